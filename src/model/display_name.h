// Names for display: template noise folded away. Full names stay in the run.
//
// Works on demangled C++ and Rust names as text, without knowing the language; what it does not
// understand it leaves as it is. Pure functions; linear in the name's length.
#pragma once

#include <string>
#include <string_view>

namespace assay::model {

// "std::vector<int, std::allocator<int> >::push_back(int&&)" → "std::vector<…>::push_back(int&&)".
// Operators (operator<, operator->), "(anonymous namespace)", "<T as Trait>::method" and lambdas
// ("{lambda(int)#1}" → "{lambda#1}") keep what tells them apart.
std::string fold_name(std::string_view name);

// As fold_name, without return type, parameters and qualifiers: "std::vector<…>::push_back".
std::string short_name(std::string_view name);

}  // namespace assay::model
