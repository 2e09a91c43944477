// An object library must have a source; the headers that tests share are listed in
// tests/CMakeLists.txt.
