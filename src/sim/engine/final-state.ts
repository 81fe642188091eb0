// Collects the claims, volumes, pods, attachments, nodes, quotas and classes in the store, and the volumes in the drivers, at the
// end of a run with a violation, by title, for its timeline.
import type { SimDriver } from '../environment/driver.ts'
import type { View } from './view.ts'

/** How many of an object's last events are included. */
const EVENTS_MAX = 4

export function collectFinalState(view: View, drivers: ReadonlyMap<string, SimDriver>): Record<string, object> {
  const objects: Record<string, object> = {}
  const collections = {
    claim: view.claims,
    volume: view.volumes,
    pod: view.pods,
    attachment: view.attachments,
    node: view.nodes,
    quota: view.quotas,
    class: view.classes,
    'attributes class': view.attributesClasses,
  } as const
  for (const [title, collection] of Object.entries(collections))
    for (const [key, object] of collection) objects[`${title} ${key}`] = addEvents(object, view)
  for (const [name, driver] of drivers)
    for (const volume of Object.values(driver.state().volumes)) objects[`${name} volume ${volume.id}`] = volume
  return objects
}

function addEvents(object: { readonly metadata?: { readonly uid?: string } }, view: View): object {
  const events = view.eventsOf(object.metadata?.uid ?? '').slice(-EVENTS_MAX)
  return events.length > 0
    ? { ...object, events: events.map(({ reason, message }) => `${reason}: ${message}`) }
    : object
}
