// Encodes and decodes the subject name of X.509 certificates, which contains the user, its groups and its uid.
import * as der from '../base/der/der.ts'
import { type DerElement, readElements, readObjectId } from '../base/der/der-reader.ts'

export interface SubjectName {
  commonName: string
  /** The O entries, which are the groups of the user. */
  organizations?: readonly string[]
  uid?: string
}

const COMMON_NAME = '2.5.4.3'
/** UTF8String, PrintableString and IA5String. Programs may decode other encodings differently. */
const COMMON_NAME_TAGS: ReadonlySet<number> = new Set([0x0c, 0x13, 0x16])
const ORGANIZATION = '2.5.4.10'
/** The subject attribute that contains the UID of a user in Kubernetes. */
export const UID_ATTRIBUTE = '1.3.6.1.4.1.57683.2'

export const encodeName = ({ commonName, organizations = [], uid }: SubjectName): Uint8Array =>
  der.sequence(
    ...organizations.map((organization) => nameEntry(ORGANIZATION, organization)),
    nameEntry(COMMON_NAME, commonName),
    ...(uid ? [nameEntry(UID_ATTRIBUTE, uid)] : []),
  )

const nameEntry = (id: string, value: string) => der.set(der.sequence(der.objectId(id), der.utf8String(value)))

/** Decodes a name. Attributes other than those of SubjectName are ignored. */
export function decodeName(element: DerElement): SubjectName & { organizations: readonly string[] } {
  let commonName: string | undefined
  let uid: string | undefined
  const organizations: string[] = []
  for (const relativeName of readElements(element.content)) {
    for (const attribute of readElements(relativeName.content)) {
      const [id, value] = readElements(attribute.content)
      if (!id || !value) throw new Error('malformed name')
      const type = readObjectId(id.content)
      const text = Buffer.from(value.content).toString('utf8')
      if (type === COMMON_NAME) {
        // The signer copies the subject. Other programs may use another of several common names, or decode it differently.
        if (commonName !== undefined) throw new Error('a name has more than one common name')
        if (!COMMON_NAME_TAGS.has(value.tag)) throw new Error('a common name has an unsupported encoding')
        commonName = text
      } else if (type === ORGANIZATION) organizations.push(text)
      else if (type === UID_ATTRIBUTE) uid = text
    }
  }
  const name = { commonName: commonName ?? '', organizations }
  return uid === undefined ? name : { ...name, uid }
}
