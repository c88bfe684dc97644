#include "executor/control/launcher_variables.h"

#include <doctest/doctest.h>

#include <map>

namespace stave {
namespace {

Variables given(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto at = values.find(name);
    return at == values.end() ? std::nullopt : std::optional(at->second);
  };
}

RankPlace place(std::map<std::string, std::string> values) {
  const Result<std::optional<RankPlace>> found = find_place(given(std::move(values)));
  REQUIRE_MESSAGE(found, found.failure().message);
  REQUIRE(found.value());
  return *found.value();
}

std::string failure(std::map<std::string, std::string> values) {
  const Result<std::optional<RankPlace>> found = find_place(given(std::move(values)));
  REQUIRE(!found);
  return found.failure().message;
}

TEST_CASE("no variables: one process") {
  const Result<std::optional<RankPlace>> found = find_place(given({{"SLURM_PROCID", "0"}, {"MASTER_ADDR", "x"}}));
  REQUIRE(found);
  CHECK(!found.value());
}

TEST_CASE("the variables of torchrun come before those of mpirun and Slurm") {
  const RankPlace p = place({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "h0"},
                             {"MASTER_PORT", "29500"}, {"OMPI_COMM_WORLD_RANK", "9"}, {"SLURM_PROCID", "8"},
                             {"STAVE_TOKEN", "t"}, {"STAVE_LISTENER", "7"}});
  CHECK(p.rank == 2);
  CHECK(p.size == 4);
  CHECK(p.local_rank == 1);
  CHECK(p.host == "h0");
  CHECK(p.port == 29500);
  CHECK(p.token == "t");
  CHECK(p.listener == -1);
}

TEST_CASE("mpirun does not say where rank 0 is; Slurm's list of hosts does") {
  const RankPlace mpi = place({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  CHECK(mpi.launcher == "mpirun");
  CHECK(mpi.host.empty());
  CHECK(place({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).rank == 1);
  const RankPlace slurm = place({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"},
                                 {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "40123"},
                                 {"SLURM_STEP_NODELIST", "n[007-009],m1"}});
  CHECK(slurm.launcher == "srun");
  CHECK(slurm.host == "n007");
  CHECK(slurm.port == 20000 + 40123 % 12000);
  CHECK(slurm.local_size == 0);
  CHECK(slurm.token == "slurm job 40123");
}

TEST_CASE("Slurm: the steps of a job have ports of their own, MASTER_ADDR is stronger, the ranks of a host are counted") {
  std::map<std::string, std::string> values = {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "5"}, {"SLURM_LOCALID", "0"},
                                               {"SLURM_STEP_ID", "1"}, {"SLURM_JOB_ID", "12001"}, {"SLURM_NODEID", "2"},
                                               {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                                               {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.7"}};
  CHECK(place(values).host == "10.0.0.7");
  CHECK(place(values).port == 20000 + 1 + 7919);
  CHECK(place(values).local_size == 1);
  values["SLURM_STEP_NODELIST"] = "n[1-3]";
  CHECK(place(values).host == "n1");
  values["MASTER_ADDR"] = "10.0.0.8";
  CHECK(place(values).host == "10.0.0.8");
  CHECK(place(values).port == 20000 + 1 + 7919);
  values["MASTER_PORT"] = "29500";
  CHECK(place(values).port == 29500);
  values["SLURM_STEP_NODELIST"] = "[1-3";
  CHECK(failure(values) == "the variable SLURM_STEP_NODELIST is '[1-3', which names no host");
  values.erase("SLURM_STEP_ID");
  CHECK(!find_place(given(values)).value());
}

TEST_CASE("the tasks of a node") {
  CHECK(tasks_of_node("2(x3),1", 0) == 2);
  CHECK(tasks_of_node("2(x3),1", 2) == 2);
  CHECK(tasks_of_node("2(x3),1", 3) == 1);
  CHECK(tasks_of_node("2(x3),1", 4) == 0);
  CHECK(tasks_of_node("2(x", 1) == 0);
  CHECK(tasks_of_node("", 0) == 0);
}

TEST_CASE("the token, where none is given, is what the launcher calls the job") {
  std::map<std::string, std::string> torch = {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "h"},
                                              {"MASTER_PORT", "1"}, {"TORCHELASTIC_RUN_ID", "r7"}};
  CHECK(place(torch).token == "torchrun r7");
  CHECK(place({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_NAMESPACE", "421"}}).token ==
        "mpirun 421");
  torch["STAVE_TOKEN"] = "mine";
  CHECK(place(torch).token == "mine");
  torch["STAVE_TOKEN"] = std::string(1025, 'x');
  CHECK(failure(torch) == "the variable STAVE_TOKEN has 1025 characters; 1024 is the most");
}

TEST_CASE("torchrun keeps MASTER_PORT for itself, where its agent has the store") {
  std::map<std::string, std::string> torch = {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "h"},
                                              {"MASTER_PORT", "29500"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
  CHECK(place(torch).port == 29500);
  torch["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  CHECK(place(torch).port == 25500);
  torch["MASTER_PORT"] = "25500";
  CHECK(place(torch).port == 21500);
  torch["MASTER_PORT"] = "65536";
  CHECK(failure(torch) == "the variable MASTER_PORT is '65536', but must be a number from 1 to 65535");
}

TEST_CASE("ranks of a host") {
  std::map<std::string, std::string> values = {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"},
                                               {"LOCAL_WORLD_SIZE", "4"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}};
  CHECK(place(values).local_size == 4);
  values["LOCAL_RANK"] = "4";
  CHECK(failure(values) == "the variable LOCAL_RANK is '4', but must be a number from 0 to 3");
}

TEST_CASE("the first host of a list") {
  CHECK(first_host("n1") == "n1");
  CHECK(first_host("n1,n2") == "n1");
  CHECK(first_host("n[1-3]") == "n1");
  CHECK(first_host("n[03,05]-ib,m[1-2]") == "n03-ib");
  CHECK(first_host("n[1-3") == "");
  CHECK(first_host("") == "");
}

TEST_CASE("a variable that is missing or wrong is named with its value") {
  CHECK(failure({{"RANK", "0"}}) == "the variable WORLD_SIZE is missing, while others of its launcher are set");
  CHECK(failure({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "h"}}) ==
        "the variable RANK is '4', but must be a number from 0 to 3");
  CHECK(failure({{"RANK", "one"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "h"}}) ==
        "the variable RANK is 'one', but must be a number from 0 to 3");
  CHECK(failure({{"RANK", "0"}, {"WORLD_SIZE", "99999"}}) ==
        "the variable WORLD_SIZE is '99999', but must be a number from 1 to 4096");
  CHECK(failure({{"RANK", "0"}, {"WORLD_SIZE", "2"}}) ==
        "RANK is set, but MASTER_ADDR, where rank 0 is found, is not");
  CHECK(failure({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", ""}, {"MASTER_PORT", "1"}}) ==
        "the variable MASTER_ADDR is empty, but must be the address of rank 0");
  CHECK(failure({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "70000"}}) ==
        "the variable MASTER_PORT is '70000', but must be a number from 1 to 65535");
  CHECK(failure({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}}) ==
        "the variable MASTER_PORT is missing, while others of its launcher are set");
}

}  // namespace
}  // namespace stave
