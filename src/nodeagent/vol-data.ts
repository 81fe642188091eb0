// The format of vol_data.json: which volume of which driver a directory belongs to. With it a restarted agent can unmount
// the volume. The keys are the kubelet's.

export interface VolData {
  readonly volumeHandle: string
  readonly driverName: string
  /** The PV's name; for a volume in the pod itself, its name there. */
  readonly specVolID?: string
  readonly nodeName?: string
  readonly attachmentID?: string
  readonly volumeLifecycleMode?: 'Persistent' | 'Ephemeral'
}

export const formatVolData = (data: VolData): string => `${JSON.stringify(data)}\n`

/** Undefined for an invalid or truncated file. */
export function parseVolData(text: string): VolData | undefined {
  let data: unknown
  try {
    data = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return undefined
  const known: Record<string, string> = {}
  for (const key of KEYS) {
    const value = (data as Record<string, unknown>)[key]
    if (typeof value === 'string') known[key] = value
    else if (value !== undefined) return undefined
  }
  return known.volumeHandle && known.driverName ? (known as unknown as VolData) : undefined
}

const KEYS = ['volumeHandle', 'driverName', 'specVolID', 'nodeName', 'attachmentID', 'volumeLifecycleMode'] as const
