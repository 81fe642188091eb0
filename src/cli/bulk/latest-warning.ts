// Reads the message of the newest Warning event of a claim.
import { eventKind } from '../../api/kinds/event/event.ts'
import type { Client, ObjectRef } from '../../client/index.ts'

export async function readLatestWarning(
  client: Client,
  { namespace = '', name }: ObjectRef,
): Promise<string | undefined> {
  const fieldSelector = `involvedObject.kind=PersistentVolumeClaim,involvedObject.name=${name},type=Warning`
  const { items } = await client.list(eventKind, { namespace, fieldSelector })
  const latestEvent = items.reduce<(typeof items)[number] | undefined>(
    (newestEvent, event) =>
      !newestEvent || (event.lastTimestamp ?? '') >= (newestEvent.lastTimestamp ?? '') ? event : newestEvent,
    undefined,
  )
  return latestEvent?.message
}
