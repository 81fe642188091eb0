// The volume of a claim and its attachments, watched while a component shows them.
import { useEffect, useMemo } from 'preact/hooks'
import type { ClaimView } from '../../logic/claim-view.ts'
import { type AttachmentRow, projectVolume, type VolumeRow } from '../../rows/storage.ts'
import { attachments, useCollections, WatchedCollection } from '../../state/collections.ts'

interface RelatedObjects {
  readonly volume: VolumeRow | undefined
  readonly attachments: readonly AttachmentRow[]
}

export function useRelatedObjects({ claim }: ClaimView): RelatedObjects {
  const { volumeName } = claim
  useCollections(attachments)
  const volumes = useMemo(() => (volumeName === undefined ? undefined : volumeCollection(volumeName)), [volumeName])
  useEffect(() => volumes?.use(), [volumes])
  void volumes?.version.value
  const volume = [...(volumes?.rows.values() ?? [])].find(({ name }) => name === volumeName)
  return {
    volume,
    attachments:
      volumeName === undefined ? [] : [...attachments.rows.values()].filter((row) => row.volumeName === volumeName),
  }
}

const volumeCollection = (name: string) =>
  new WatchedCollection(
    `/api/v1/persistentvolumes?fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`,
    projectVolume,
  )
