# For find_package(ulocks): the target ulocks::ulocks, of a copy that is installed as the README says.

get_filename_component(_ulocks_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET ulocks::ulocks)
    find_library(_ulocks_library NAMES ulocks PATHS "${_ulocks_prefix}/lib" NO_DEFAULT_PATH)
    if(NOT _ulocks_library)
        set(ulocks_FOUND FALSE)
        set(ulocks_NOT_FOUND_MESSAGE "there is no libulocks.so in ${_ulocks_prefix}/lib")
        return()
    endif()
    add_library(ulocks::ulocks UNKNOWN IMPORTED)
    set_target_properties(ulocks::ulocks PROPERTIES
        IMPORTED_LOCATION "${_ulocks_library}"
        INTERFACE_INCLUDE_DIRECTORIES "${_ulocks_prefix}/include")
    unset(_ulocks_library CACHE)
endif()
unset(_ulocks_prefix)
