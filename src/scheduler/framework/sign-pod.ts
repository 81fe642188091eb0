// The signature of a pod: equal for pods whose evaluation depends on the same data, such as the pods of one deployment.
import type { PodInfo } from '../cluster/pod-info.ts'
import { type Plugin, UNSIGNABLE } from './plugin.ts'

/** Undefined for a pod in no equivalence class. */
export function signPod(pod: PodInfo, plugins: readonly Plugin[]): string | undefined {
  const fragments: unknown[] = [pod.priority]
  for (const plugin of plugins) {
    const fragment = plugin.signPod?.(pod)
    if (fragment === UNSIGNABLE) return undefined
    fragments.push(fragment)
  }
  return JSON.stringify(fragments)
}
