# Run at each build: writes OUTPUT (build_info.cpp) when the commit, the state of the tree or a kernel changed.
set(git_commit unknown)
set(git_dirty false)
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE_DIR} rev-parse HEAD
    OUTPUT_VARIABLE head ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(NOT failed)
    set(git_commit ${head})
    # A new file may be a new variant, so untracked ones count. Results are outputs: a fresh result file must not make the
    # next run's program look changed.
    execute_process(COMMAND ${git} -C ${SOURCE_DIR} status --porcelain -- . ":(exclude)results"
      OUTPUT_VARIABLE changes ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(changes)
      set(git_dirty true)
    endif()
  endif()
endif()

file(GLOB_RECURSE kernel_files RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/kernels/*)
list(SORT kernel_files)
set(listing "")
foreach(file IN LISTS kernel_files)
  file(SHA256 ${SOURCE_DIR}/${file} hash)
  string(APPEND listing "${hash}  ${file}\n")
endforeach()
string(SHA256 kernels_sha256 "${listing}")

configure_file(${SOURCE_DIR}/cmake/build_info.cpp.in ${OUTPUT} @ONLY)
