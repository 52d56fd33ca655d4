/* s3:// is not there yet. */
#include "io/net_impl.h"

spk_status spk_s3_add(spk_net *net, spk_mirror *m, spk_error *err)
{
    (void)net;
    return spk_error_set(err, SPK_E_UNSUPPORTED, "%s: URL scheme \"s3\" is not supported", m->place.prefix);
}

spk_status spk_s3_sign(spk_net *net, const spk_mirror *m, CURL *easy, struct curl_slist **headers, spk_error *err)
{
    (void)net, (void)m, (void)easy, (void)headers, (void)err;
    return SPK_OK;
}

bool spk_s3_expired(spk_net *net, const spk_transfer *t)
{
    (void)net, (void)t;
    return false;
}

void spk_s3_free(spk_s3 *s3)
{
    (void)s3;
}
