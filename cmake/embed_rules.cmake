# Writes OUT, a .cpp that holds every rule file below ROOT as text: cmake -DROOT= -DOUT= -P this.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/*.toml)
list(SORT files)
set(body "")
foreach(file ${files})
  file(READ ${ROOT}/${file} text)
  string(APPEND body "      {\"${file}\", R\"~~~~rules(${text})~~~~rules\"},\n")
endforeach()
file(WRITE ${OUT}.new "// Made from rules/ by cmake/embed_rules.cmake.
#include \"analysis/rules/rule_set.h\"

namespace assay::analysis {

const std::vector<RuleText>& built_in_rules() {
  static const std::vector<RuleText> kRules{
${body}  };
  return kRules;
}

}  // namespace assay::analysis
")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.new ${OUT})
file(REMOVE ${OUT}.new)
