# cmake -DOUT=page.cc -DFOLDER=page -P embed.cmake
#   Writes the files of the folder as C++: what mbcas/ui/page.h declares.
set(html "text/html; charset=utf-8")
set(css "text/css; charset=utf-8")
set(js "text/javascript; charset=utf-8")
set(svg "image/svg+xml")

set(arrays "")
set(table "")
file(GLOB files ${FOLDER}/*)
list(SORT files)
foreach(file IN LISTS files)
  cmake_path(GET file FILENAME name)
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  string(SUBSTRING "${extension}" 1 -1 extension)
  if(NOT DEFINED ${extension})
    message(FATAL_ERROR "${file}: of no known type")
  endif()
  string(MAKE_C_IDENTIFIER "k_${name}" identifier)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char ${identifier}[] = {${bytes}};\n")
  set(path "/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND table
    "    {\"${path}\", \"${${extension}}\", {${identifier}, sizeof ${identifier}}},\n")
endforeach()
file(WRITE ${OUT} "#include \"mbcas/ui/page.h\"

namespace mbcas::ui {
namespace {

${arrays}
constexpr Asset kAssets[] = {
${table}};

}  // namespace

std::span<const Asset> assets() {
  return kAssets;
}

}  // namespace mbcas::ui
")
