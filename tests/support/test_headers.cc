// An object library must have a source. The headers that tests share are listed in
// tests/CMakeLists.txt.
