# Stands in front of the link command of a shared model (ptcModels.cmake): what ptc wrote is the library, so instead of
# linking it gets its place. FROM: ptc's file; WEIGHTS: the file of --weights=file, or nothing; TO: the target's file.
# A second name for the same bytes where the file system has that; the time stamp says that the target was made now.
function(place from to)
  file(REMOVE "${to}")
  file(CREATE_LINK "${from}" "${to}" RESULT failed COPY_ON_ERROR)
  if(failed)
    message(FATAL_ERROR "cannot write '${to}': ${failed}")
  endif()
  file(TOUCH_NOCREATE "${to}")
endfunction()

get_filename_component(TO "${TO}" ABSOLUTE)
if(WEIGHTS)
  get_filename_component(folder "${TO}" DIRECTORY)
  get_filename_component(file "${WEIGHTS}" NAME)
  place("${WEIGHTS}" "${folder}/${file}")
endif()
place("${FROM}" "${TO}")
