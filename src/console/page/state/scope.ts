// The namespace that the page is limited to. A user who may not list claims in all namespaces chooses one; it is stored in this
// browser, and the page is loaded again, because the watches of namespaced objects depend on it.
import { readPreference, writePreference } from './preferences.ts'

const PREFERENCE = 'namespace'

/** Empty for all namespaces. */
export const scope: string = readPreference(PREFERENCE) ?? ''

export function setScope(namespace: string): void {
  writePreference(PREFERENCE, namespace)
  location.reload()
}

/** Returns the path of a collection of namespaced objects. */
export const scopedPath = (base: string, plural: string): string =>
  scope === '' ? `${base}/${plural}` : `${base}/namespaces/${encodeURIComponent(scope)}/${plural}`
