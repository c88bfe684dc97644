# The libraries that stave is built with. All are Debian packages; none is downloaded by a build.

find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(doctest REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Threads REQUIRED)
