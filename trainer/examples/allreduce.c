/* allreduce.c: the smallest trainer in C. Start one per server; each prints the same sum.
 *
 *     gcc allreduce.c -o allreduce $(pkg-config --cflags --libs gradcube)
 *     gradcube run -- ./allreduce
 */
#include <gradcube/gradcube.h>
#include <stdio.h>

int main(int argc, char** argv) {
  gradcube_session* session = NULL;
  if (gradcube_open(argc > 1 ? argv[1] : NULL, "example", NULL, &session) != GRADCUBE_OK) {
    fprintf(stderr, "%s\n", gradcube_last_error(NULL));
    return 1;
  }

  enum { kCount = 1000 };
  int result = 1;
  uint64_t request = 0;
  float* numbers = gradcube_alloc(session, kCount * sizeof(float));
  if (numbers != NULL) {
    for (int i = 0; i < kCount; ++i) numbers[i] = (float)gradcube_rank(session);
    if (gradcube_allreduce(session, numbers, kCount, GRADCUBE_FLOAT32, GRADCUBE_SUM, &request) ==
            GRADCUBE_OK &&
        gradcube_wait(session, request, 60000) == GRADCUBE_OK) {
      printf("rank %d of %d: the sum of all ranks is %g\n", gradcube_rank(session),
             gradcube_size(session), (double)numbers[kCount - 1]);
      result = 0;
    }
  }
  if (result != 0) fprintf(stderr, "%s\n", gradcube_last_error(session));
  gradcube_free(session, numbers);
  gradcube_close(session);
  return result;
}
