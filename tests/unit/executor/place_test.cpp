#include "executor/control/place.h"

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
  CHECK(slurm.port == 20000 + 123);
  CHECK(slurm.token == "slurm job 40123");
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
  CHECK(failure({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "70000"}}) ==
        "the variable MASTER_PORT is '70000', but must be a number from 1 to 65535");
  CHECK(failure({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}}) ==
        "the variable MASTER_PORT is missing, while others of its launcher are set");
}

}  // namespace
}  // namespace stave
