// stave, without the libraries of GPUs: what needs them it hands to stave-gpu (gpu_main.cpp).
#include "cli/program.h"

int main(int count, char** arguments) { return stave::run_program(count, arguments); }
