// Parses the argument of `stowage why`, such as `pvc/data`, with the names of kinds that kubectl accepts.
import { UsageError } from '../../../base/usage-error.ts'
import { TARGET_KINDS, type Target, type TargetKind } from '../../../diagnosis/index.ts'

export const TARGET_KIND_NAMES = Object.keys(TARGET_KINDS) as TargetKind[]
const EXPECTED = 'expected pvc/NAME, pod/NAME, pv/NAME or node/NAME'

/** `namespace` is that of the flag or the kubeconfig. It applies to claims and pods only. */
export function parseTarget(text: string, namespace: string): Target {
  const [, kindText, name] = /^([^/]+)\/([^/]+)$/.exec(text) ?? []
  if (!kindText || !name) throw new UsageError(`${JSON.stringify(text)}: ${EXPECTED}`)
  const kind = TARGET_KIND_NAMES.find((candidate) =>
    TARGET_KINDS[candidate].names.some((known) => known === kindText.toLowerCase()),
  )
  if (!kind) throw new UsageError(`The kind ${JSON.stringify(kindText)} has no explanation: ${EXPECTED}`)
  return TARGET_KINDS[kind].isNamespaced ? { kind, namespace, name } : { kind, name }
}
