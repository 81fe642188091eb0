// Computes the signature of a pod. Pods whose evaluation depends on the same data, such as the pods of one Deployment,
// have equal signatures.
import type { PodInfo } from '../cluster/pod-info.ts'
import { type Plugin, UNSIGNABLE } from './plugin.ts'

/** Returns undefined if the pod belongs to no equivalence class. */
export function signPod(pod: PodInfo, plugins: readonly Plugin[]): string | undefined {
  const fragments: unknown[] = [pod.priority]
  for (const plugin of plugins) {
    const fragment = plugin.signPod?.(pod)
    if (fragment === UNSIGNABLE) return undefined
    fragments.push(fragment)
  }
  return JSON.stringify(fragments)
}
