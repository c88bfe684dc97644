# Writes OUTPUT, a C++ file with the golden files of FOLDER that show a kind of diagnostic, for `stave explain`.
#
#   cmake -DFOLDER=... -DOUTPUT=... -P embed_examples.cmake

file(GLOB names RELATIVE ${FOLDER} ${FOLDER}/*.sched ${FOLDER}/*.test)
list(SORT names)
set(text "// Made by cli/embed_examples.cmake from tests/golden.\n#include \"cli/examples.h\"\n\n")
string(APPEND text "namespace stave {\n\nstd::span<const Example> examples() {\n")
string(APPEND text "  static constexpr Example kExamples[] = {\n      {\"\", \"\"},\n")
foreach(name ${names})
  file(READ ${FOLDER}/${name} content)
  string(FIND "${content}" "# KIND:" at)
  if(NOT at EQUAL -1)
    string(APPEND text "      {\"${name}\", R\"golden(${content})golden\"},\n")
  endif()
endforeach()
string(APPEND text "  };\n  return std::span<const Example>(kExamples).subspan(1);\n}\n\n}  // namespace stave\n")
file(WRITE ${OUTPUT} "${text}")
