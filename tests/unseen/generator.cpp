// unseen_generator: the generator of algorithms that no schedule is ever written for.
#include "generators/generator.h"
#include "tests/unseen/algorithms.h"

int main(int argc, char **argv) { return tessera::generator_main(argc, argv, tessera::test::unseen_algorithms()); }
