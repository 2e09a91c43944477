# Installs the unit, which contains the paths of the program and its settings, and the settings, unless they exist. systemd
# searches /usr/local and /usr; settings of programs in /usr are in /etc.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(attendant_settings /etc/attendant)
else()
  set(attendant_settings ${CMAKE_INSTALL_PREFIX}/etc/attendant)
endif()
set(attendant_programs ${CMAKE_INSTALL_PREFIX}/bin)
set(attendant_units ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)

file(READ ${attendant_systemd}/attendant.service.in attendant_unit)
string(CONFIGURE "${attendant_unit}" attendant_unit @ONLY)
file(WRITE "$ENV{DESTDIR}${attendant_units}/attendant.service" "${attendant_unit}")
message(STATUS "Installed: $ENV{DESTDIR}${attendant_units}/attendant.service")
if(NOT EXISTS "$ENV{DESTDIR}${attendant_settings}/attendant.conf")
  file(INSTALL ${attendant_systemd}/attendant.conf DESTINATION ${attendant_settings})
endif()
