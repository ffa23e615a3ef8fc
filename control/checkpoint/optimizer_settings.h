// Optimizer settings as people write them, and what they may be.
//
//     sgd:lr=0.1    nesterov:lr=0.1,momentum=0.9,weight-decay=1e-4,clip=1
//     adamw:lr=1e-3,beta1=0.9,beta2=0.999,eps=1e-8,weight-decay=0.01
//
// A name alone has PyTorch's defaults, and 0.01 for the learning rate of the first three. A setting
// that its rule does not have is refused, and so is one outside its bounds:
//
//     lr, weight-decay  at least 0          momentum   above 0 and below 1
//     dampening         0 to 1; momentum's  beta1, beta2  at least 0 and below 1
//     eps, clip         above 0
#ifndef GRADCUBE_CONTROL_CHECKPOINT_OPTIMIZER_SETTINGS_H_
#define GRADCUBE_CONTROL_CHECKPOINT_OPTIMIZER_SETTINGS_H_

#include <string>
#include <string_view>

#include "aggregation/optimizer_step.h"

namespace gradcube::control {

// The defaults of a rule.
aggregation::OptimizerSettings default_settings(aggregation::OptimizerRule rule);

// Throws a UsageError that begins with `where`.
void check_settings(const aggregation::OptimizerSettings& settings, std::string_view where);
aggregation::OptimizerSettings parse_optimizer(std::string_view text, std::string_view where);

// Sets what the text names, "lr=0.1,clip=1", and leaves the rest. Throws the same.
void change_settings(aggregation::OptimizerSettings& settings, std::string_view text,
                     std::string_view where);

// What parse_optimizer() reads back as the same settings.
std::string optimizer_text(const aggregation::OptimizerSettings& settings);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_CHECKPOINT_OPTIMIZER_SETTINGS_H_
