// The program ptc: the command line over ptc's own compiler.
#include "cli/CompileSession.h"

int main(int argc, char **argv) { return ptc::runProgram(argc, argv, {}); }
