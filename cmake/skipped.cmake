# A test that cannot be built here is still one: it says why, and counts as skipped.
function(stave_skipped name why)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${why}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()
