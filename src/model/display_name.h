// Names for display: template arguments are folded to "…". Full names stay in the run.
//
// Works on demangled C++ and Rust names as text, without knowing the language; text that it does
// not understand stays unchanged. Pure functions; linear in the name's length.
#pragma once

#include <string>
#include <string_view>

namespace assay::model {

// "std::vector<int, std::allocator<int> >::push_back(int&&)" → "std::vector<…>::push_back(int&&)".
// Operators (operator<, operator->), "(anonymous namespace)", "<T as Trait>::method" and lambdas
// ("{lambda(int)#1}" → "{lambda#1}") keep the part that distinguishes them.
std::string fold_name(std::string_view name);

// As fold_name, without return type, parameters and qualifiers: "std::vector<…>::push_back".
std::string short_name(std::string_view name);

// Whether a function has no name and goes by its place in its module: "postgres!fn_45d8a0".
inline bool is_place_name(std::string_view name) {
  return name.find("!fn_") != std::string_view::npos;
}

}  // namespace assay::model
