// Finds out which version of a kind the server serves: the first of ours that its discovery lists.
import type { Kind } from '../../api/kind.ts'
import { isNotServed } from '../../api/status-error.ts'
import type { Transport } from './transport.ts'
import { parseResponse } from './wire.ts'

/** Versions found are cached until a request fails because the kind is not served; a missing kind is looked up again. */
export function createServedVersions(transport: Transport) {
  const found = new Map<string, string>()
  const idOf = ({ group, plural }: Kind) => `${group}/${plural}`
  const find = async (kind: Kind): Promise<string | undefined> => {
    const known = found.get(idOf(kind))
    if (known) return known
    for (const version of kind.versions) {
      if (!(await isServed(transport, kind, version))) continue
      found.set(idOf(kind), version)
      return version
    }
    return undefined
  }
  return {
    find,
    forget: (kind: Kind) => void found.delete(idOf(kind)),
    /** A kind with one version needs no lookup: if it is not served, the request itself fails. */
    of: async (kind: Kind): Promise<string> =>
      kind.versions.length === 1 ? kind.versions[0]! : ((await find(kind)) ?? kind.versions[0]!),
  }
}

async function isServed(transport: Transport, { group, plural }: Kind, version: string): Promise<boolean> {
  const path = group ? `/apis/${group}/${version}` : `/api/${version}`
  try {
    const { resources = [] } = parseResponse(await transport.call({ method: 'GET', path }))
    return resources.some(({ name }: { name: string }) => name === plural)
  } catch (error) {
    if (isNotServed(error)) return false // the group version
    throw error
  }
}
