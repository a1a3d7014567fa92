#pragma once

namespace mbcas {

// The program mbcas-controller: flags in, exit code out. A function, so that the command line can
// be both, by the name it is called by, and an image of both holds what they share once.
int runController(int argc, char** argv);

}  // namespace mbcas
