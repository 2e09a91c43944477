# Installs bash's completion of both programs, as the installed programs print it.
set(attendant_root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(attendant_completions ${attendant_root}/share/bash-completion/completions)
file(MAKE_DIRECTORY ${attendant_completions})
execute_process(COMMAND ${attendant_root}/bin/attendant-client completion bash
                OUTPUT_FILE ${attendant_completions}/attendant-client COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${attendant_root}/bin/attendant-server --completion bash
                OUTPUT_FILE ${attendant_completions}/attendant-server COMMAND_ERROR_IS_FATAL ANY)
message(STATUS "Installed: ${attendant_completions}/attendant-client, attendant-server")
