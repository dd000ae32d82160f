# What Debian's policy asks of the files of a package: compressed manual pages without the time of day inside, and zsh's
# functions in the folder for packages.
file(GLOB roots ${CPACK_TEMPORARY_INSTALL_DIRECTORY} ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*)
foreach(root ${roots})
  file(GLOB pages ${root}/usr/share/man/man1/*.1)
  foreach(page ${pages})
    execute_process(COMMAND gzip -9n ${page} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  if(EXISTS ${root}/usr/share/zsh/site-functions)
    file(RENAME ${root}/usr/share/zsh/site-functions ${root}/usr/share/zsh/vendor-completions)
  endif()
endforeach()
