// Judges every DeleteVolume by what the store held when its caller last looked: never while the volume's policy is Retain,
// never while a claim is bound to it.
import { checkDeletions, type Witness } from '../../checkers/deletions.ts'
import { assetName, assetOf } from '../view.ts'
import type { ClientSpy, Court } from './court.ts'

export function judgeDeletions({ stage, view, convict }: Court): ClientSpy {
  const { world } = stage.cluster
  const checker = checkDeletions(world, view.store, (crime) => convict('deleted wrongly', crime), assetOf)
  /** Of the life that each process is in. */
  const witnesses = new Map<string, Witness>()
  stage.onCall(({ process, driver, method, volume }, phase) => {
    if (phase === 'begins' && method === 'DeleteVolume') witnesses.get(process)?.destroys(assetName(driver, volume))
  })
  return {
    aroundClient(process, client) {
      const witness = checker.witness(client)
      witnesses.set(process, witness)
      return witness.client
    },
  }
}
