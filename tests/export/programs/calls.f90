! Calls exported functions from Fortran.
program calls
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int32_t) function value_and_slope(x, n, k, value, slope) bind(c)
      import
      real(c_double), intent(in) :: x(*)
      integer(c_int64_t), value :: n
      real(c_double), value :: k
      real(c_double), intent(out) :: value, slope(*)
    end function
    integer(c_int32_t) function ordered_sum(x, n, total) bind(c)
      import
      real(c_double), intent(in) :: x(*)
      integer(c_int64_t), value :: n
      real(c_double), intent(out) :: total
    end function
  end interface
  real(c_double) :: x(6), slope(6), value, total
  integer :: k
  x = [(0.25d0 * k - 0.5d0, k = 0, 5)]
  if (value_and_slope(x, 6_c_int64_t, 0.5d0, value, slope) /= 0) stop 1
  if (ordered_sum(x, 6_c_int64_t, total) /= 0) stop 2
  print '(es25.17)', value, slope, total
end program
