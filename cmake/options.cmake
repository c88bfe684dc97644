# What every target of stave is compiled with: one interface target, so that no folder repeats it.
# GCC 12 warns of -Wrestrict inside its own std::string, falsely, hence the exception.

option(STAVE_WARNINGS_AS_ERRORS "Treat warnings as errors (our own presets do)" OFF)
set(STAVE_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread; empty for none")

add_library(stave_options INTERFACE)
target_include_directories(stave_options INTERFACE ${PROJECT_SOURCE_DIR})
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-restrict
             $<$<BOOL:${STAVE_WARNINGS_AS_ERRORS}>:-Werror>)
# What nvcc takes are options of its own.
target_compile_options(stave_options INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${warnings}>")
if(STAVE_SANITIZE)
  target_compile_options(stave_options INTERFACE
    "$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${STAVE_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  target_link_options(stave_options INTERFACE -fsanitize=${STAVE_SANITIZE})
endif()
