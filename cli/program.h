// The whole program: reads the command line, hands it to one command, and gives the exit status.
#pragma once

namespace stave {

int run_program(int count, char** arguments);

}  // namespace stave
