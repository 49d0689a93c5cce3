/* Our clock for other programs: libinferometer_sampler.so, loaded by the adapter of a peer (docs/peers.md).
 *
 * A sampler belongs to the thread that opened it. Functions that return NULL leave a sentence for
 * inferometer_sampler_error. */
#ifndef INFEROMETER_SAMPLER_H
#define INFEROMETER_SAMPLER_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inferometer_sampler inferometer_sampler;

/* Launches once with input set `set`, and returns 0. On a GPU it only queues work on the sampler's stream; on the
 * processors it returns when done. It must not throw or jump out; another value says that it failed. Then the time is
 * not taken, unless the launch was being captured in a CUDA graph: what cannot be captured is timed without one. */
typedef int (*inferometer_launch)(void* context, int set);

/* gpu: the ordinal of a GPU, or -1 for the processors. */
inferometer_sampler* inferometer_sampler_open(int gpu);

/* The cudaStream_t on which launches must be queued; NULL on the processors. */
void* inferometer_sampler_stream(inferometer_sampler* sampler);

/* Both estimators over `sets` input sets. `measure` is the "measure" object of a "time" message, as text. The answer is
 * {"type": "timed", "timing": {...}, "suspect": null}, ready to be sent; it is valid until the next call. */
const char* inferometer_sampler_time(inferometer_sampler* sampler, inferometer_launch launch, void* context, int sets,
                                     const char* measure);

const char* inferometer_sampler_error(void); /* why the last call of this thread returned NULL */
void inferometer_sampler_close(inferometer_sampler* sampler);

#ifdef __cplusplus
}
#endif

#endif
