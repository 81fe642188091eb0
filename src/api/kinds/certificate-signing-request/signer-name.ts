// Lists the signers of this server and validates the name of a signer: a domain and a path, such as
// kubernetes.io/kube-apiserver-client.
import type { FieldErrors } from '../../field-errors.ts'
import { dns1123SubdomainProblems } from '../../names.ts'

export const KUBELET_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet'
export const KUBELET_SERVING_SIGNER = 'kubernetes.io/kubelet-serving'
export const API_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client'

const LENGTH_MAX = 571 // a domain (253), a slash, a namespace (63), a dot and a name (253)

export function validateSignerName(name: string, field: string, errors: FieldErrors): void {
  if (name === '') {
    errors.required(field)
    return
  }
  const [domain = '', path, ...furtherSegments] = name.split('/')
  if (path === undefined || furtherSegments.length > 0) {
    errors.invalid(field, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
    return
  }
  errors.invalidAll(field, domain, dns1123SubdomainProblems(domain))
  if (!domain.includes('.'))
    errors.invalid(field, domain, 'should be a domain with at least two segments separated by dots')
  errors.invalidAll(field, path, dns1123SubdomainProblems(path))
  if (name.length > LENGTH_MAX) errors.tooLong(field, LENGTH_MAX)
}
