// Formats and parses vol_data.json, which stores the volume and the driver of a directory, so that a restarted agent can
// unmount the volume. The keys are the same as in the kubelet's files.

export interface VolData {
  readonly volumeHandle: string
  readonly driverName: string
  /** The name of the PV, or of the inline volume in the pod. */
  readonly specVolID?: string
  readonly nodeName?: string
  readonly attachmentID?: string
  readonly volumeLifecycleMode?: 'Persistent' | 'Ephemeral'
}

export const formatVolData = (data: VolData): string => `${JSON.stringify(data)}\n`

/** Returns undefined if the file is invalid or truncated. */
export function parseVolData(text: string): VolData | undefined {
  let data: unknown
  try {
    data = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return undefined
  const volData: Record<string, string> = {}
  for (const key of KEYS) {
    const value = (data as Record<string, unknown>)[key]
    if (typeof value === 'string') volData[key] = value
    else if (value !== undefined) return undefined
  }
  return volData.volumeHandle && volData.driverName ? (volData as unknown as VolData) : undefined
}

const KEYS = ['volumeHandle', 'driverName', 'specVolID', 'nodeName', 'attachmentID', 'volumeLifecycleMode'] as const
