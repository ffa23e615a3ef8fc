/* gradcube_hub.h is C, and needs no other header before it. */
#include <gradcube/gradcube_hub.h>

int make_a_hub_from_c(gradcube_session* session, gradcube_hub** hub);
int make_a_hub_from_c(gradcube_session* session, gradcube_hub** hub) {
  const gradcube_hub_key keys[] = {{"weight", 100, GRADCUBE_FLOAT32},
                                   {"bias", 10, GRADCUBE_BFLOAT16}};
  gradcube_hub_settings settings = GRADCUBE_HUB_SETTINGS_INIT;
  settings.keys = keys;
  settings.key_count = sizeof keys / sizeof keys[0];
  settings.optimizer = "momentum:lr=0.1,momentum=0.9";
  return gradcube_hub_create(session, &settings, 60000, hub);
}

double own_rate_in_c(void);
double own_rate_in_c(void) { return GRADCUBE_HUB_RATE; }
