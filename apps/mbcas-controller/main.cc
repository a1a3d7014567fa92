#include "apps/mbcas-controller/controller.h"

int main(int argc, char** argv) {
  return mbcas::runController(argc, argv);
}
