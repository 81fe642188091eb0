// Formats object references as KIND/NAME, with the short names of kinds that kubectl or, for `va`, `stowage retry` accepts.

const SHORT_KINDS: Readonly<Record<string, string>> = {
  PersistentVolumeClaim: 'pvc',
  PersistentVolume: 'pv',
  VolumeAttachment: 'va',
  VolumeAttributesClass: 'vac',
  StorageClass: 'sc',
  Pod: 'pod',
  Node: 'node',
}

/** Returns for example `pvc/orders`. */
export const shortRef = (kind: string, name: string): string => `${SHORT_KINDS[kind] ?? kind}/${name}`
