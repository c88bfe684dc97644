// The commands of stave, one file each. Each adds itself to the command line and leaves its exit status.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/console.h"

namespace stave {

CLI::App* add_check(CLI::App& app, Exit& exit);
CLI::App* add_show(CLI::App& app, Exit& exit);
CLI::App* add_table(CLI::App& app, Exit& exit);
CLI::App* add_simulate(CLI::App& app, Exit& exit);
CLI::App* add_compare(CLI::App& app, Exit& exit);
CLI::App* add_diff(CLI::App& app, Exit& exit);
CLI::App* add_draw(CLI::App& app, Exit& exit);
CLI::App* add_partition(CLI::App& app, Exit& exit);
CLI::App* add_profile(CLI::App& app, Exit& exit);
CLI::App* add_run(CLI::App& app, Exit& exit);
CLI::App* add_list(CLI::App& app, Exit& exit);
CLI::App* add_explain(CLI::App& app, Exit& exit);

}  // namespace stave
