#define FACTOR 2u
