# Installs the files that only a Debian package has: manual pages, changelogs, copyright and README.Debian. Install the
# component `programs` first, because its programs print the manual pages.
set(attendant_root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(attendant_documents ${attendant_root}/share/doc/attendant)

# attendant_compress(FILE): as Debian asks for, without a name and a time, so that the same input gives the same bytes.
function(attendant_compress file)
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "Installed: ${file}.gz")
endfunction()

foreach(program attendant-server attendant-client)
  set(attendant_page ${attendant_root}/share/man/man1/${program}.1)
  file(MAKE_DIRECTORY ${attendant_root}/share/man/man1)
  execute_process(COMMAND ${attendant_deb}/manual_page.sh ${attendant_root}/bin/${program} ${attendant_version}
                  OUTPUT_FILE ${attendant_page} COMMAND_ERROR_IS_FATAL ANY)
  attendant_compress(${attendant_page})
endforeach()

file(INSTALL ${attendant_deb}/copyright ${attendant_deb}/README.Debian
     DESTINATION ${CMAKE_INSTALL_PREFIX}/share/doc/attendant)  # below DESTDIR, which file() adds
configure_file(${attendant_source}/CHANGELOG.md ${attendant_documents}/changelog COPYONLY NO_SOURCE_PERMISSIONS)
attendant_compress(${attendant_documents}/changelog)
string(TIMESTAMP attendant_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${attendant_documents}/changelog.Debian
"attendant (${attendant_version}) stable; urgency=medium

  * Made by cpack; changelog.gz says what is new.

 -- ${attendant_maintainer}  ${attendant_date}
")
attendant_compress(${attendant_documents}/changelog.Debian)
