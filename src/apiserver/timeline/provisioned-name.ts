// The names of provisioned volumes, which consist of a prefix and the uid of their claim. A record with the uid therefore need not
// contain the name.

const PREFIX = 'pvc-'

export const nameOfVolume = (claimUid: string): string => PREFIX + claimUid

export const isNamedAfter = (volume: string, claimUid: string): boolean =>
  volume.length === PREFIX.length + claimUid.length && volume.startsWith(PREFIX) && volume.endsWith(claimUid)

/** Returns the uid of the claim after which a volume is named, if it is. */
export const claimUidOf = (volume: string): string | undefined =>
  volume.startsWith(PREFIX) ? volume.slice(PREFIX.length) : undefined
