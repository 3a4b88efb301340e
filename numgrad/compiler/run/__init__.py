"""Between a caller and native code: signatures, dispatch, programs, the tape."""
