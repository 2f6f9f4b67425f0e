//! Integer intervals and the ranges of machine types.
//!
//! In: bounds as wide integers. Out: bounds of sums, products, quotients and bit operations that hold every possible
//! result. It knows nothing of programs; a bound past ±2¹²⁵ counts as infinite and stays infinite.

/// A bound at or past this magnitude counts as infinite.
const INFINITE: i128 = 1 << 125;

/// All integers from `lo` to `hi`, both included. Empty when `lo > hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    /// The smallest member.
    pub lo: i128,
    /// The largest member.
    pub hi: i128,
}

/// How a machine value is read as an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sign {
    /// Two's complement.
    Signed,
    /// Not negative.
    Unsigned,
}

fn clamp(value: Option<i128>, negative: bool) -> i128 {
    match value {
        Some(v) => v.clamp(-INFINITE, INFINITE),
        None if negative => -INFINITE,
        None => INFINITE,
    }
}

fn product(a: i128, b: i128) -> i128 {
    if a == 0 || b == 0 {
        return 0;
    }
    clamp(a.checked_mul(b), (a < 0) != (b < 0))
}

fn bound_sum(a: i128, b: i128, up: bool) -> i128 {
    let limit = if up { INFINITE } else { -INFINITE };
    if a == limit || b == limit { limit } else { clamp(a.checked_add(b), !up) }
}

impl Interval {
    /// Every integer that this module counts as finite.
    pub const ALL: Self = Self { lo: -INFINITE, hi: INFINITE };

    /// From `lo` to `hi`.
    #[must_use]
    pub fn new(lo: i128, hi: i128) -> Self {
        Self { lo: lo.clamp(-INFINITE, INFINITE), hi: hi.clamp(-INFINITE, INFINITE) }
    }

    /// One integer.
    #[must_use]
    pub fn point(value: i128) -> Self {
        Self::new(value, value)
    }

    /// The values of a machine integer of `width` bits (1 to 64). One bit reads as 0 or 1 either way.
    #[must_use]
    pub fn of_type(width: u8, sign: Sign) -> Self {
        let width = u32::from(width.clamp(1, 64));
        match sign {
            _ if width == 1 => Self { lo: 0, hi: 1 },
            Sign::Signed => Self { lo: -(1i128 << (width - 1)), hi: (1i128 << (width - 1)) - 1 },
            Sign::Unsigned => Self { lo: 0, hi: (1i128 << width) - 1 },
        }
    }

    /// Whether no integer is inside.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    /// The only member, where there is just one.
    #[must_use]
    pub fn single(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Whether `value` is inside.
    #[must_use]
    pub fn holds(self, value: i128) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// Whether every member of `self` is in `other`.
    #[must_use]
    pub fn within(self, other: Self) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }

    /// The common members.
    #[must_use]
    pub fn meet(self, other: Self) -> Self {
        Self { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    /// The smallest interval over both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// How many integers lie between the ends.
    #[must_use]
    pub fn span(self) -> i128 {
        bound_sum(self.hi, -self.lo, true)
    }

    /// Sums.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { lo: bound_sum(self.lo, other.lo, false), hi: bound_sum(self.hi, other.hi, true) }
    }

    /// Differences.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { lo: bound_sum(self.lo, -other.hi, false), hi: bound_sum(self.hi, -other.lo, true) }
    }

    /// Products.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let corners = [
            product(self.lo, other.lo),
            product(self.lo, other.hi),
            product(self.hi, other.lo),
            product(self.hi, other.hi),
        ];
        Self::over(&corners)
    }

    fn over(values: &[i128]) -> Self {
        let mut range = Self { lo: INFINITE, hi: -INFINITE };
        for &value in values {
            range = Self { lo: range.lo.min(value), hi: range.hi.max(value) };
        }
        range
    }

    /// The part of a divisor that is not zero, as up to two intervals.
    fn without_zero(self) -> [Self; 2] {
        [self.meet(Self::new(-INFINITE, -1)), self.meet(Self::new(1, INFINITE))]
    }

    /// Quotients, rounded toward zero. A division by zero has no result, so it adds none.
    #[must_use]
    pub fn quotient(self, other: Self) -> Self {
        let mut range = Self { lo: INFINITE, hi: -INFINITE };
        for part in other.without_zero().into_iter().filter(|part| !part.is_empty()) {
            let corners = [self.lo / part.lo, self.lo / part.hi, self.hi / part.lo, self.hi / part.hi];
            range = range.hull(Self::over(&corners));
            if self.holds(0) {
                range = range.hull(Self::point(0));
            }
        }
        if range.is_empty() { Self::point(0) } else { range }
    }

    /// Remainders with the sign of the dividend.
    #[must_use]
    pub fn remainder(self, other: Self) -> Self {
        if let (Some(a), Some(b)) = (self.single(), other.single())
            && b != 0
        {
            return Self::point(a % b);
        }
        let most = other.lo.abs().max(other.hi.abs()).saturating_sub(1).max(0);
        let least = other.without_zero().into_iter().filter(|part| !part.is_empty());
        let smallest = least.map(|part| part.lo.abs().min(part.hi.abs())).min().unwrap_or(1);
        if self.lo > -smallest && self.hi < smallest {
            return self;
        }
        // One block of residues: a quotient that is the same at both ends keeps the order.
        if let Some(b) = other.single()
            && b > 0
            && self.lo >= 0
            && self.lo / b == self.hi / b
        {
            return Self::new(self.lo % b, self.hi % b);
        }
        Self::new(
            if self.lo < 0 { self.lo.max(-most) } else { 0 },
            if self.hi > 0 { self.hi.min(most) } else { 0 },
        )
    }

    /// Quotients by 2^`bits`, rounded down.
    #[must_use]
    pub fn shift_right(self, bits: Self) -> Self {
        let bits = bits.meet(Self::new(0, 127));
        if bits.is_empty() {
            return self.hull(Self::point(0)).hull(Self::point(-1));
        }
        let (few, many) = (bits.lo, bits.hi);
        Self::over(&[self.lo >> few, self.lo >> many, self.hi >> few, self.hi >> many])
    }

    /// Smaller of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.min(other.hi) }
    }

    /// Larger of two.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Bitwise and, of values that are not negative in at least one operand.
    #[must_use]
    pub fn and(self, other: Self, width: u8) -> Self {
        match (self.lo >= 0, other.lo >= 0) {
            (true, true) => Self::new(0, self.hi.min(other.hi)),
            (true, false) => Self::new(0, self.hi),
            (false, true) => Self::new(0, other.hi),
            (false, false) => Self::of_type(width, Sign::Signed),
        }
    }

    /// Bitwise or and exclusive or.
    #[must_use]
    pub fn or(self, other: Self, width: u8) -> Self {
        if self.lo < 0 || other.lo < 0 {
            return Self::of_type(width, Sign::Signed);
        }
        let top = self.hi.max(other.hi).max(0) as u128;
        let ones = if top == 0 { 0 } else { u128::MAX >> top.leading_zeros() };
        Self::new(0, i128::try_from(ones).unwrap_or(INFINITE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_their_limits() {
        assert_eq!(Interval::of_type(32, Sign::Signed), Interval::new(-2_147_483_648, 2_147_483_647));
        assert_eq!(Interval::of_type(32, Sign::Unsigned).hi, 4_294_967_295);
        assert_eq!(Interval::of_type(1, Sign::Signed), Interval::new(0, 1));
    }

    /// Every operation holds every concrete result, on all small boxes.
    #[test]
    fn operations_hold_every_result() {
        let ends = -5..=5i128;
        for (a, b) in ends.clone().flat_map(|a| (a..=5).map(move |b| (a, b))) {
            for (c, d) in ends.clone().flat_map(|c| (c..=5).map(move |d| (c, d))) {
                let (x, y) = (Interval::new(a, b), Interval::new(c, d));
                for u in a..=b {
                    for v in c..=d {
                        assert!(x.times(y).holds(u * v));
                        assert!(x.minus(y).holds(u - v));
                        assert!(v == 0 || x.quotient(y).holds(u / v), "{u}/{v} in {x:?}/{y:?}");
                        assert!(
                            v == 0 || x.remainder(y).holds(u % v),
                            "{u}%{v} in {x:?}%{y:?} = {:?}",
                            x.remainder(y)
                        );
                        assert!(x.and(y, 8).holds(u & v));
                        assert!(x.or(y, 8).holds(u | v) && x.or(y, 8).holds(u ^ v));
                        assert!(v < 0 || x.shift_right(y).holds(u >> v));
                        assert!(x.min(y).holds(u.min(v)) && x.max(y).holds(u.max(v)));
                    }
                }
            }
        }
    }

    #[test]
    fn infinite_bounds_stay_infinite() {
        let huge = Interval::new(0, i128::MAX);
        assert_eq!(huge.times(huge).minus(Interval::point(5)).hi, INFINITE);
        assert_eq!(huge.times(Interval::point(-1)).lo, -INFINITE);
    }
}
