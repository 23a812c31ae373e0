//! Reads a plan: first the TOML, then the meaning of its keys together.

use serde::Deserialize;
use sluice_outcome::study::{Measure, Unit};
use sluice_workload::WorkloadForm;
use sluice_workload::read_toml;

use super::{
    Case, CauseTest, Change, Claim, ClaimRates, Plan, PolicySetup, Quantity, Relation, Subject, Tolerance,
    slices,
};
use crate::error::StudyError;
use crate::gauge::Gauge;
use crate::hint;
use crate::limit::{ClassMetric, Limit, value_of};
use crate::numbers;
use crate::time_course::RawCourse;

/// The largest number of replications in a plan, and their number if it states none.
const REPLICATIONS_MAX: u32 = 1_000;
const REPLICATIONS: u32 = 5;
/// The source of a plan that states none.
const OWN: &str = "a plan of your own";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    name: String,
    title: Option<String>,
    source: Option<String>,
    ours: Option<bool>,
    #[serde(default)]
    notes: Vec<String>,
    testbed: String,
    workers: Option<u32>,
    seed: Option<u64>,
    tasks: u64,
    replications: Option<u32>,
    tolerance: Option<RawTolerance>,
    case: Vec<RawCase>,
    policy: Vec<RawPolicy>,
    #[serde(default)]
    best: Vec<RawBest>,
    #[serde(default)]
    claim: Vec<RawClaim>,
    #[serde(default)]
    cause: Vec<RawCause>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTolerance {
    value: f64,
    ratio: f64,
    change: f64,
    rate: f64,
    order: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    id: String,
    title: Option<String>,
    workload: WorkloadForm,
    #[serde(default)]
    large: f64,
    #[serde(default)]
    testbed: toml::Table,
    lasts: Option<String>,
    within: Option<String>,
    #[serde(default)]
    overload: bool,
    rates: String,
    policies: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    run: Vec<String>,
    slices: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBest {
    label: String,
    of: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    id: String,
    says: String,
    place: String,
    ours: Option<bool>,
    case: Option<String>,
    // What is measured: one of these keys.
    metric: Option<String>,
    keeps: Option<String>,
    saturation: Option<bool>,
    gauge: Option<String>,
    course: Option<RawCourse>,
    // Where a metric is measured: one of these keys.
    at: Option<String>,
    at_limit_of: Option<String>,
    // whose it is
    policy: Option<String>,
    over: Option<String>,
    over_case: Option<String>,
    // What the paper says: one of these keys.
    value: Option<String>,
    ratio: Option<f64>,
    change: Option<f64>,
    #[serde(default)]
    over_classes: bool,
    at_most: Option<String>,
    at_least: Option<String>,
    order: Option<Vec<OneOrMore>>,
    closer_in: Option<String>,
    group: Option<String>,
    unknown_set_up: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCause {
    id: String,
    of: Vec<String>,
    says: String,
    policy: Option<RawSwap>,
    testbed: Option<toml::Table>,
    workload: Option<String>,
    large: Option<f64>,
    slowdown: Option<String>,
    slices: Option<String>,
    workers: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSwap {
    from: String,
    to: String,
}

impl Plan {
    /// Reads a plan; error messages call it `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, StudyError> {
        let raw: RawPlan = read_toml(text).map_err(|said| StudyError::Plan {
            plan: name.to_owned(),
            line: said.line,
            why: said.why,
        })?;
        checked(raw).map_err(|why| StudyError::Plan { plan: name.to_owned(), line: None, why })
    }
}

fn checked(raw: RawPlan) -> Result<Plan, String> {
    let book = PlanNames::new(&raw)?;
    let claims = raw.claim.iter().map(|claim| book.claims(claim)).collect::<Result<Vec<_>, _>>()?.concat();
    let causes = raw.cause.into_iter().map(|raw| cause(raw, &claims)).collect::<Result<_, _>>()?;
    let replications = raw.replications.unwrap_or(REPLICATIONS);
    if raw.tasks < u64::from(replications) {
        return Err(format!("{} tasks are fewer than {replications} replications: ask for more", raw.tasks));
    }
    if !(1..=REPLICATIONS_MAX).contains(&replications) {
        return Err(format!("{replications} replications are not between 1 and {REPLICATIONS_MAX}"));
    }
    let tolerance = match &raw.tolerance {
        Some(stated) => tolerance(stated)?,
        None if claims.is_empty() => Tolerance::UNUSED,
        None => return Err("[tolerance] is missing: a [[claim]] is held to it".into()),
    };
    if raw.workers == Some(0) {
        return Err("0 workers: ask for one at least".into());
    }
    Ok(Plan {
        title: raw.title.unwrap_or_else(|| raw.name.clone()),
        name: raw.name,
        source: raw.source.unwrap_or_else(|| OWN.to_owned()),
        notes: raw.notes,
        testbed: raw.testbed,
        workers: raw.workers,
        seed: raw.seed.unwrap_or(1),
        tasks: raw.tasks,
        replications,
        cases: book.cases,
        claims,
        causes,
        searches: Vec::new(),
        comparisons: Vec::new(),
        tolerance,
    })
}

fn tolerance(raw: &RawTolerance) -> Result<Tolerance, String> {
    let all = [raw.value, raw.ratio, raw.change, raw.rate, raw.order];
    if all.iter().any(|share| !(0.0..1.0).contains(share)) {
        return Err("[tolerance]: a share is not between 0 and 1: write it so, such as 0.25".into());
    }
    let RawTolerance { value, ratio, change, rate, order } = *raw;
    Ok(Tolerance { value, ratio, change, rate, order })
}

/// The cases and names that claims and causes refer to.
struct PlanNames {
    /// The default of `ours` for statements without that key.
    ours: Option<bool>,
    cases: Vec<Case>,
    runs: Vec<PolicySetup>,
    best: Vec<Subject>,
}

impl PlanNames {
    fn new(raw: &RawPlan) -> Result<Self, String> {
        let mut runs: Vec<PolicySetup> = Vec::new();
        for policy in &raw.policy {
            let slices =
                policy.slices.as_deref().map_or(Ok(Vec::new()), slices).map_err(|why| why.to_string())?;
            runs.extend(
                policy
                    .run
                    .iter()
                    .map(|policy| PolicySetup { policy: policy.clone(), slices: slices.clone() }),
            );
        }
        let mut book = Self { ours: raw.ours, cases: Vec::new(), runs, best: Vec::new() };
        for best in &raw.best {
            let of = best.of.iter().map(|name| book.run(name).cloned()).collect::<Result<_, _>>()?;
            book.best.push(Subject { label: best.label.clone(), of });
        }
        for case in &raw.case {
            let case = book.case(case).map_err(|why| format!("[[case]] {}: {why}", case.id))?;
            if book.cases.iter().any(|known| known.id == case.id) {
                return Err(format!("two cases are called `{}`: rename one", case.id));
            }
            book.cases.push(case);
        }
        Ok(book)
    }

    fn case(&self, raw: &RawCase) -> Result<Case, String> {
        let rates = numbers::several(&raw.rates, numbers::rate).map_err(|why| why.to_string())?;
        let runs = match &raw.policies {
            None => self.runs.clone(),
            Some(names) => names.iter().map(|name| self.run(name).cloned()).collect::<Result<_, _>>()?,
        };
        if !(0.0..=1.0).contains(&raw.large) {
            return Err(format!("large = {} is not a share between 0 and 1", raw.large));
        }
        let lasts = raw.lasts.as_deref().map(|text| {
            let span = value_of(text, Unit::Ns).map(|ns| ns as u64);
            span.ok_or_else(|| format!("lasts = `{text}` is no span: write one such as 600ms"))
        });
        let within = raw.within.as_deref().map(str::parse).transpose();
        Ok(Case {
            within: within.map_err(|why| format!("within: {why}"))?,
            overload: raw.overload,
            id: raw.id.clone(),
            title: raw.title.clone().unwrap_or_else(|| raw.id.clone()),
            workload: raw.workload.written(),
            large: raw.large,
            lasts_ns: lasts.transpose()?,
            testbed: raw.testbed.clone(),
            rates,
            runs,
        })
    }

    fn run(&self, name: &str) -> Result<&PolicySetup, String> {
        let found = self.runs.iter().find(|run| run.policy == name || run.label() == name);
        found.ok_or_else(|| hint::unknown("policy", name, self.runs.iter().map(|run| run.policy.as_str())))
    }

    /// The subject of this name in a case; a family consists of those members that the case runs.
    fn who(&self, name: &str, case: &Case) -> Result<Subject, String> {
        let who = match self.best.iter().find(|best| best.label == name) {
            Some(best) => best.clone(),
            None => Subject::one(self.run(name)?),
        };
        let of: Vec<PolicySetup> = who.of.into_iter().filter(|run| case.runs.contains(run)).collect();
        if of.is_empty() {
            Err(format!("`{name}` is not run in case `{}`", case.id))
        } else {
            Ok(Subject { of, ..who })
        }
    }

    fn case_named(&self, id: &str) -> Result<usize, String> {
        let found = self.cases.iter().position(|case| case.id == id);
        found.ok_or_else(|| hint::unknown("case", id, self.cases.iter().map(|case| case.id.as_str())))
    }

    /// The claim for its case, or for each case that runs everything it names.
    fn claims(&self, raw: &RawClaim) -> Result<Vec<Claim>, String> {
        let complain = |why: String| format!("[[claim]] {}: {why}", raw.id);
        if let Some(case) = &raw.case {
            let case = self.case_named(case).map_err(complain)?;
            return Ok(vec![self.claim(raw, case).map_err(complain)?]);
        }
        let all: Vec<_> = (0..self.cases.len()).map(|case| self.claim(raw, case)).collect();
        let first = all.iter().find_map(|claim| claim.as_ref().err()).cloned();
        let some: Vec<Claim> = all.into_iter().filter_map(Result::ok).collect();
        match first {
            Some(why) if some.is_empty() => Err(complain(why)),
            _ => Ok(some),
        }
    }

    fn claim(&self, raw: &RawClaim, case: usize) -> Result<Claim, String> {
        let quantity = self.quantity(raw, case)?;
        Ok(Claim {
            id: raw.id.clone(),
            says: raw.says.clone(),
            place: raw.place.clone(),
            ours: raw.ours.or(self.ours).ok_or(
                "does not say whose its number is: add `ours = false` if a paper has it, else `ours = true`, \
                 here or for all at the plan's top",
            )?,
            case,
            relation: self.relation(raw, case, &quantity)?,
            quantity,
            group: raw.group.clone(),
            unknown_set_up: raw.unknown_set_up.clone(),
        })
    }

    fn quantity(&self, raw: &RawClaim, case: usize) -> Result<Quantity, String> {
        let limit = raw.keeps.as_deref().map(Limit::parse).transpose().map_err(|why| why.to_string())?;
        if let (None, None, None, Some(other)) = (&raw.metric, &limit, raw.saturation, other(raw)) {
            return other;
        }
        match (&raw.metric, limit, raw.saturation) {
            (Some(metric), limit, None) => {
                let wanted = ClassMetric::parse(metric).map_err(|why| why.to_string())?;
                Ok(Quantity::At { wanted, at: self.at(raw, case, limit)? })
            }
            (None, Some(limit), None) => Ok(Quantity::Keeps(limit)),
            (None, None, Some(true)) => Ok(Quantity::Saturation),
            _ => {
                Err("needs exactly one of `metric`, `keeps`, `saturation = true`, `gauge` and `course`"
                    .into())
            }
        }
    }

    fn at(&self, raw: &RawClaim, case: usize, limit: Option<Limit>) -> Result<ClaimRates, String> {
        match (&raw.at, &raw.at_limit_of, limit) {
            (Some(rates), None, None) => {
                numbers::several(rates, numbers::rate).map(ClaimRates::Rates).map_err(|why| why.to_string())
            }
            (None, Some(who), Some(limit)) => {
                Ok(ClaimRates::LimitOf(self.who(who, &self.cases[case])?, limit))
            }
            _ => Err("a metric needs `at` (rates), or `at_limit_of` (a policy) with `keeps`".into()),
        }
    }

    fn relation(&self, raw: &RawClaim, case: usize, quantity: &Quantity) -> Result<Relation, String> {
        raw.states_one_thing()?;
        let here = &self.cases[case];
        let named = |name: &Option<String>, key: &str| match name {
            Some(name) => self.who(name, here),
            None => Err(format!("`{key}` is missing; add it")),
        };
        let who = || named(&raw.policy, "policy");
        let over_case = raw.over_case.as_deref().map_or(Ok(case), |id| self.case_named(id))?;
        let over = || match &raw.over {
            Some(name) => self.who(name, &self.cases[over_case]),
            None => Err("`over` is missing; add it".to_owned()),
        };
        let number = |key: &str, text: &str, unit| {
            value_of(text, unit).ok_or_else(|| format!("{key} `{text}` does not fit its unit"))
        };
        if let Some(most) = &raw.at_most {
            let over = if raw.over.is_some() { Some((over()?, over_case)) } else { None };
            let unit = if over.is_some() { Unit::Ratio } else { quantity.unit() };
            return Ok(Relation::AtMost { who: who()?, over, most: number("at_most", most, unit)? });
        }
        if let Some(least) = &raw.at_least {
            if raw.over.is_some() {
                return Err(
                    "`at_least` is of a number by itself: turn the two round and say `at_most`".into()
                );
            }
            let least = number("at_least", least, quantity.unit())?;
            return Ok(Relation::AtLeast { who: who()?, least });
        }
        if quantity.rates() > 1 && raw.order.is_none() {
            return Err("is about one number, and `at` has several rates: give one, or say `at_most` or \
                        `at_least`, which hold at each"
                .into());
        }
        if let Some(value) = &raw.value {
            return Ok(Relation::Value { who: who()?, paper: number("value", value, quantity.unit())? });
        }
        if let Some(paper) = raw.ratio {
            return Ok(Relation::Ratio { who: who()?, over: over()?, over_case, paper });
        }
        if let Some(order) = &raw.order {
            let place = |names: &OneOrMore| match names {
                OneOrMore::One(name) => Ok(vec![self.who(name, here)?]),
                OneOrMore::More(names) => names.iter().map(|name| self.who(name, here)).collect(),
            };
            return order.iter().map(place).collect::<Result<_, String>>().map(Relation::Order);
        }
        if let Some(other) = &raw.closer_in {
            return Ok(Relation::Closer { who: who()?, over: over()?, case: self.case_named(other)? });
        }
        let paper = raw.change.expect("one thing is stated");
        if !raw.over_classes {
            return Ok(Relation::Change { who: who()?, over: over()?, over_case, paper });
        }
        if !quantity.is_one_slowdown() {
            return Err("`over_classes` averages a slowdown of all classes at one rate: give `metric` \
                        such as slowdown_p99, and one rate in `at`"
                .into());
        }
        Ok(Relation::MeanChange { who: who()?, over: over()?, over_case, paper })
    }
}

impl RawClaim {
    fn states_one_thing(&self) -> Result<(), String> {
        let stated = [
            self.value.is_some(),
            self.ratio.is_some(),
            self.change.is_some(),
            self.at_most.is_some(),
            self.at_least.is_some(),
            self.order.is_some(),
            self.closer_in.is_some(),
        ];
        if stated.into_iter().filter(|is_stated| *is_stated).count() == 1 {
            return Ok(());
        }
        Err("needs exactly one of `value`, `ratio`, `change`, `at_most`, `at_least`, `order` and `closer_in`"
            .into())
    }
}

/// A quantity that is not a task's time: a gauge at rates, or a course at one rate.
fn other(raw: &RawClaim) -> Option<Result<Quantity, String>> {
    let rates = || {
        let rates = raw.at.as_deref().ok_or("needs `at`, a rate")?;
        numbers::several(rates, numbers::rate).map_err(|why| why.to_string())
    };
    match (&raw.gauge, &raw.course) {
        (Some(gauge), None) => Some(
            Gauge::parse(gauge)
                .map_err(|why| why.to_string())
                .and_then(|gauge| Ok(Quantity::Gauge { gauge, rates: rates()? })),
        ),
        (None, Some(course)) => Some(course.read().and_then(|course| match rates()?[..] {
            [rate] => Ok(Quantity::Course { course, rate }),
            _ => Err("a course needs exactly one rate in `at`".to_owned()),
        })),
        _ => None,
    }
}

fn cause(raw: RawCause, claims: &[Claim]) -> Result<CauseTest, String> {
    let complain = |why: String| format!("[[cause]] {}: {why}", raw.id);
    for of in &raw.of {
        if !claims.iter().any(|claim| claim.id == *of) {
            return Err(complain(hint::unknown("claim", of, claims.iter().map(|claim| claim.id.as_str()))));
        }
    }
    let slowdown = raw.slowdown.as_deref().map(slowdown).transpose();
    let slices = raw.slices.as_deref().map(slices).transpose().map_err(|why| why.to_string());
    let changes = [
        raw.policy.map(|swap| Change::Policy { from: swap.from, to: swap.to }),
        raw.testbed.map(Change::Testbed),
        raw.workload.map(Change::Workload),
        raw.large.map(Change::Large),
        slowdown.map_err(complain)?.map(Change::Slowdown),
        slices.map_err(complain)?.map(Change::Slices),
        raw.workers.map(Change::Workers),
    ];
    let changes: Vec<Change> = changes.into_iter().flatten().collect();
    if changes.is_empty() {
        return Err(complain(
            "changes at least one of policy, testbed, workload, large, slowdown, slices, workers".into(),
        ));
    }
    Ok(CauseTest { id: raw.id, of: raw.of, says: raw.says, changes })
}

fn slowdown(name: &str) -> Result<Measure, String> {
    let known = Measure::ALL.into_iter().filter(|measure| measure.unit() == Unit::Ratio);
    let names: Vec<&str> = known.clone().map(Measure::name).collect();
    known
        .into_iter()
        .find(|measure| measure.name() == name)
        .ok_or_else(|| hint::unknown("slowdown", name, names))
}

impl Quantity {
    /// Whether the quantity is a slowdown by tasks' own services, over all classes, at one rate.
    fn is_one_slowdown(&self) -> bool {
        let Self::At { wanted, at: ClaimRates::Rates(rates) } = self else { return false };
        rates.len() == 1 && wanted.class.is_none() && wanted.metric.measure == Measure::Slowdown
    }

    /// At how many rates the quantity is measured.
    fn rates(&self) -> usize {
        match self {
            Self::At { at: ClaimRates::Rates(rates), .. } | Self::Gauge { rates, .. } => rates.len(),
            _ => 1,
        }
    }

    /// The unit of its numbers.
    pub fn unit(&self) -> Unit {
        match self {
            Self::At { wanted, .. } => wanted.metric.unit(),
            Self::Keeps(_) | Self::Saturation => Unit::PerS,
            Self::Gauge { gauge, .. } => gauge.unit(),
            Self::Course { course, .. } => course.unit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        name = "mine"
        title = "t"
        source = "s"
        ours = true
        testbed = "rain"
        seed = 1
        tasks = 1000
        replications = 2
        tolerance = { value = 0.25, ratio = 0.25, change = 0.1, rate = 0.1, order = 0.25 }
        policy = [{ run = ["rain:1", "rain:2"] }]
        case = [{ id = "c", title = "t", workload = "const:10us", rates = "200k" }]

        [[claim]]
        id = "order"
        says = "one is lower"
        place = "here"
        case = "c"
        metric = "p99"
        at = "200k"
        order = ["rain:1", "rain:2"]

        [[cause]]
        id = "both"
        of = ["order"]
        says = "why"
    "#;

    fn read(keys: &str) -> Result<Plan, StudyError> {
        Plan::parse("mine", &format!("{PLAN}{keys}"))
    }

    #[test]
    fn a_cause_may_change_several_settings_where_each_alone_is_not_enough() {
        let plan = read("large = 1.0\npolicy = { from = \"rain:1\", to = \"rain:3\" }").expect("legal");
        assert_eq!(plan.causes[0].text(), "rain:3 for rain:1 and 100 % of tasks over 8 bytes");
    }

    #[test]
    fn a_statement_says_whose_its_number_is_itself_or_at_the_top() {
        let whole = format!("{PLAN}large = 1.0");
        let parse = |from, to| Plan::parse("mine", &whole.replace(from, to));
        assert!(parse("", "").expect("legal").claims[0].ours, "as the plan says");
        let itself = parse("place = \"here\"", "place = \"here\"\nours = false").expect("legal");
        assert!(!itself.claims[0].ours, "as it says itself");
        let why = parse("ours = true", "").expect_err("nobody says").to_string();
        assert!(why.contains("[[claim]] order: does not say whose its number is"), "{why}");
    }

    #[test]
    fn a_bound_holds_at_each_rate_and_a_number_is_of_one() {
        let stating = |keys: &str| {
            let order = "at = \"200k\"\n        order = [\"rain:1\", \"rain:2\"]";
            Plan::parse("mine", &format!("{PLAN}large = 1.0").replace(order, keys))
        };
        let rates = "at = \"100k,200k\"\npolicy = \"rain:1\"\n";
        assert!(stating(&format!("{rates}at_least = \"1us\"")).is_ok());
        for (keys, why) in [
            ("value = \"1us\"", "`at` has several rates"),
            ("at_least = \"1us\"\nover = \"rain:2\"", "turn the two round and say `at_most`"),
            ("at_least = \"1us\"\nat_most = \"2us\"", "needs exactly one of"),
        ] {
            let found = stating(&format!("{rates}{keys}")).expect_err(why).to_string();
            assert!(found.contains(why), "{found}");
        }
    }

    #[test]
    fn both_plans_of_the_page_are_read_and_the_short_one_needs_no_more() {
        let page = include_str!("../../../../../docs/manual/studies.md");
        let plans: Vec<&str> =
            page.split("```toml\n").skip(1).filter_map(|of| of.split("```").next()).collect();
        let [short, long] = plans[..] else { panic!("{} plans", plans.len()) };
        let plan = Plan::parse("my.toml", short).expect("legal");
        assert_eq!((plan.seed, plan.replications, plan.title), (1, 5, plan.name));
        assert!(plan.claims.is_empty() && plan.cases[0].title == plan.cases[0].id);
        assert_eq!(Plan::parse("my.toml", long).expect("legal").claims.len(), 1);
        let claim = format!("[[claim]]{}", long.split("[[claim]]").nth(1).expect("a statement"));
        let claim = claim.split("[[cause]]").next().expect("a statement").replace("\"rain\"", "\"rain:1\"");
        let why = Plan::parse("my.toml", &format!("{short}{claim}")).expect_err("it has no tolerance");
        assert!(why.to_string().contains("[tolerance] is missing"), "{why}");
    }

    #[test]
    fn a_cause_that_changes_nothing_is_refused() {
        let why = read("").expect_err("it changes nothing").to_string();
        assert!(why.contains("changes at least one of policy, testbed"), "{why}");
    }
}
