//! Advice for people and for programs.

use leanburn_memory::{Bytes, Fit};
use leanburn_train::task::Builds;
use serde_json::{Value, json};

use super::Advice;
use crate::subject::Subject;

pub fn text<T: Builds>(advice: &[Advice<T>], subject: &Subject<T>, updates: Option<u64>) -> String {
    let mut text = format!(
        "{}\n\n{:<26} {:>10} {:>10} {:>12}  {}\n",
        subject.short_title(),
        "",
        "memory",
        "to spare",
        "s/update",
        "levers"
    );
    for one in advice {
        let seconds = one.seconds.filter(|_| one.plan.fit().is_sure());
        let seconds = seconds.map_or("-".into(), |seconds| format!("{seconds:.3}"));
        text += &format!(
            "{:<26} {:>10} {:>10} {seconds:>12}  {}\n",
            one.gpu.name,
            one.gpu.memory().to_string(),
            to_spare(one).map_or("-".into(), |spare| spare.to_string()),
            levers(one),
        );
    }
    text += "s/update: at best, at the vendor's peak rates. to spare: of the whole memory, of which driver and \
             framework take some.\n";
    text + &rent(advice, updates)
}

/// The cheapest epochs.
fn rent<T: Builds>(advice: &[Advice<T>], updates: Option<u64>) -> String {
    let Some(updates) = updates else {
        return "\nno price of an epoch: the data are not here, --samples N says how many there are\n".into();
    };
    let fitting = advice.iter().filter(|one| one.plan.fit().is_sure());
    let mut epochs: Vec<_> = fitting
        .flat_map(|one| {
            one.rent
                .iter()
                .map(move |(rented, price)| (one, rented, price))
        })
        .filter_map(|(one, rented, price)| Some((one.seconds?, rented, (*price)?)))
        .collect();
    if epochs.is_empty() {
        return "\nno machine to rent is known that has a card which it fits on\n".into();
    }
    epochs.sort_by(|a, b| a.2.total_cmp(&b.2));
    let mut text = format!("\nan epoch of {updates} updates, rented, at best\n");
    for (seconds, rented, price) in epochs {
        let hours = seconds * updates as f64 / 3600.0;
        text += &format!(
            "{:<28} {:<6} {:<22} {:>9.2} USD {:>9.2} h   ({:.3} USD/h, {}, {})\n",
            rented.name,
            rented.cloud,
            format!("{} x {}", rented.count, rented.gpu),
            price,
            hours / f64::from(rented.count),
            rented.price_usd_per_hour,
            rented.region,
            rented.date,
        );
    }
    text
}

fn to_spare<T: Builds>(one: &Advice<T>) -> Option<Bytes> {
    match one.plan.fit() {
        Fit::Fits(free) => Some(free),
        _ => None,
    }
}

fn levers<T: Builds>(one: &Advice<T>) -> String {
    if !one.plan.fit().is_sure() {
        return match &one.plan.prediction.refused {
            Some(refused) => format!("does not fit: {refused}"),
            None => format!(
                "does not fit: the leanest needs {}",
                one.plan.smallest_budget()
            ),
        };
    }
    match one.plan.steps.as_slice() {
        [] => "as it is".into(),
        steps => {
            let levers = steps.iter().map(|step| step.lever.as_str());
            levers.collect::<Vec<_>>().join("; ")
        }
    }
}

pub fn json<T: Builds>(advice: &[Advice<T>], subject: &Subject<T>, updates: Option<u64>) -> Value {
    let card = |one: &Advice<T>| {
        let fits = one.plan.fit().is_sure();
        let steps = one.plan.steps.iter();
        let instances = one.rent.iter().map(|(instance, price)| {
            json!({
                "name": instance.name, "cloud": instance.cloud, "count": instance.count,
                "price_usd_per_hour": instance.price_usd_per_hour, "region": instance.region,
                "date": instance.date, "usd_per_epoch_at_best": price.filter(|_| fits),
            })
        });
        json!({
            "gpu": one.gpu.name,
            "memory": one.gpu.memory().0,
            "fits": fits,
            "peak": { "predicted": one.plan.prediction.needed().0 },
            "free": to_spare(one).map(|free| free.0),
            "smallest_budget": one.plan.smallest_budget().0,
            "levers": steps.map(|step| step.lever.as_str()).collect::<Vec<_>>(),
            "seconds_per_update_at_best": one.seconds.filter(|_| fits),
            "instances": instances.collect::<Vec<_>>(),
        })
    };
    json!({
        "model": T::model_name(&subject.recipe.model),
        "batch": subject.recipe.train.batch,
        "accumulate": subject.recipe.train.accumulate,
        "updates_per_epoch": updates,
        "gpus": advice.iter().map(card).collect::<Vec<_>>(),
    })
}
