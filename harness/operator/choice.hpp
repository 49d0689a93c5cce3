// What a variant chose as it was prepared, in words for the record. It registers how it says so beside itself:
//
//   const RegisterChoice<Matmul> choice{"cublas.f16", &choice_of_product};
//
// A header of its own: the variants that have nothing to choose do not see it.
#pragma once

#include <string>
#include <string_view>

namespace inferometer {

// `state`: what the variant's `prepare` returned.
using ChoiceText = std::string (*)(const void* state);

// Ends the program at start-up with exit code 2, naming what is registered twice.
void register_choice(std::string_view operator_name, std::string_view variant, ChoiceText text);

// Empty where the variant registered none.
std::string choice_of(std::string_view operator_name, std::string_view variant, const void* state);

template <class Op>
struct RegisterChoice {
  RegisterChoice(std::string_view variant, ChoiceText text) { register_choice(Op::kName, variant, text); }
};

}  // namespace inferometer
