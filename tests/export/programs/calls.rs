// Calls exported functions from Rust.
extern "C" {
    fn value_and_slope(x: *const f64, n: i64, k: f64, value: *mut f64, slope: *mut f64) -> i32;
    fn ordered_sum(x: *const f64, n: i64, total: *mut f64) -> i32;
}

fn main() {
    let x: Vec<f64> = (0..6).map(|k| 0.25 * k as f64 - 0.5).collect();
    let (mut value, mut total, mut slope) = (0.0, 0.0, vec![0.0; 6]);
    unsafe {
        assert_eq!(value_and_slope(x.as_ptr(), 6, 0.5, &mut value, slope.as_mut_ptr()), 0);
        assert_eq!(ordered_sum(x.as_ptr(), 6, &mut total), 0);
    }
    println!("{value}");
    slope.iter().for_each(|s| println!("{s}"));
    println!("{total}");
}
