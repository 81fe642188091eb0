// Checks CertificateSigningRequests. The signature of a request is not verified: the request must equal the one in samples.ts.
import { SIGNING_REQUEST } from '../samples.ts'
import { format, isEqualJson, type Report } from './findings.ts'
import { isDnsSubdomain } from './names.ts'

const USAGES = new Set(
  (
    'signing,digital signature,content commitment,key encipherment,key agreement,data encipherment,cert sign,crl sign,' +
    'encipher only,decipher only,any,server auth,client auth,code signing,email protection,s/mime,ipsec end system,' +
    'ipsec tunnel,ipsec user,timestamping,ocsp signing,microsoft sgc,netscape sgc'
  ).split(','),
)

export function checkCertificateSigningRequest({ spec, status }: any, report: Report, old?: any): void {
  const { request, usages = [], signerName, expirationSeconds, username } = spec
  if (contentOf(request) !== contentOf(SIGNING_REQUEST)) report('spec.request', 'has no valid signature')
  if (usages.length === 0) report('spec.usages', 'is empty')
  if (new Set(usages).size < usages.length) report('spec.usages', 'has duplicates')
  for (const usage of usages) if (!USAGES.has(usage)) report('spec.usages', `${format(usage)} is not a usage`)
  const [domain = '', path = '', ...rest] = String(signerName).split('/')
  if (!isDnsSubdomain(domain) || !domain.includes('.') || !isDnsSubdomain(path) || rest.length > 0)
    report('spec.signerName', `${format(signerName)} is not a domain and a path`)
  if (expirationSeconds !== undefined && expirationSeconds < 600) report('spec.expirationSeconds', 'is below 600')
  if (!username) report('spec.username', 'is empty')
  if (old && !isEqualJson(spec, old.spec)) report('spec', 'cannot change')
  const types: string[] = (status?.conditions ?? []).map(({ type }: any) => type)
  if (new Set(types).size < types.length) report('status.conditions', 'has duplicate types')
  if (types.includes('Approved') && types.includes('Denied')) report('status.conditions', 'is approved and denied')
}

const contentOf = (base64: string): string => Buffer.from(base64, 'base64').toString('latin1').replace(/\s/g, '')
