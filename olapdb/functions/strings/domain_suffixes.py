"""Suffixes of two labels below which names are registered, such as co.uk: the public ones by their
last label, as ClickHouse's table has them (after https://publicsuffix.org).

Not here are those of single Japanese and Norwegian towns, and most that companies run.
"""

from __future__ import annotations

_BY_COUNTRY = """
ac: com drr edu gov mil net org
ad: nom
ae: ac blogspot co gov mil net org sch
aero: caa club consulting media press res
af: com edu gov net org
ag: co com net nom org
ai: com net off org uwu
al: blogspot com edu gov mil net org
am: blogspot co com net org radio
ao: co ed gv it og pb
app: run web
ar: bet com coop edu gob gov int mil net org tur
arpa: e164 in-addr ip6 iris uri urn
as: gov
at: ac biz co gv info or priv
au: act asn com conf edu gov id info net nsw nt org oz qld sa tas vic wa
aw: com
ax: be cat es eu gg mc us xy
az: biz com edu gov info int mil name net org pp pro
ba: blogspot com edu gov mil net org rs
bb: biz co com edu gov info net org store tv
be: ac blogspot
bf: gov
bg: blogspot
bh: com edu gov net org
bi: co com edu or org
biz: dyndns orx webhop
bj: africa agro avocats blogspot co com eco edu info net org ote tourism
bm: com edu gov net org
bn: co com edu gov net org
bo: agro blog com democracia edu gob info int mil net org tv web wiki
br: abc adm adv agr aju am app arq art ato belem bhz bib bio blog bmd boavista bsb campinagrande
  campinas caxias cim cng cnt com contagem coop coz cri cuiaba curitiba def des det dev ecn eco
  edu emp enf eng esp etc eti far feira flog floripa fm fnd fortal fot foz fst geo ggf goiania gov
  gru imb ind inf jab jdf joinville jor jus leg lel log londrina macapa maceio manaus maringa mat
  med mil morena mp mus natal net niteroi not ntr odo ong org osasco palmas poa ppg pro psc psi
  pvh qsl radio rec recife rep ribeirao rio salvador sampa santamaria santoandre saobernardo
  saogonca seg sjc slg slz sorocaba srv taxi tc tec teo the tmp trd tur tv udi vet vix vlog wiki
  zlg
bs: com edu gov net org we
bt: com edu gov net org
bw: co org
by: com gov mil of
bz: com edu gov gsj net org za
ca: ab bc blogspot co gc mb nb nf nl ns nt nu on pe qc sk yk
cc: csx
cd: gov
cf: blogspot
ch: blogspot
ci: ac asso co com ed edu fin go gouv int md net nl or org presse
cl: blogspot co gob gov mil
cloud: oxa
cm: co com gov net
cn: ac ah bj com cq edu fj gd gov gs gx gz ha hb he hi hk hl hn jl js jx ln mil mo net nm nx org
  qh sc sd sh sn sx tj tw xj xz yn zj
co: arts com crd edu firm gov info int mil net nom org rec web
com: africa appspot ar blogspot br cn co de dynalias eu gr hk homelinux homeunix hu is-a-geek it
  jpn kr mex no qc ru sa uk us uy za
cr: ac co ed fi go or sa
cu: com edu gov inf net org
cv: blogspot com edu int org
cw: com edu net org
cx: ath gov info
cy: ac biz com gov ltd mil net org press pro tm
cz: blogspot co
de: blogspot com
dev: fly
dk: biz blogspot co firm reg store
dm: com edu gov net org
do: art com edu gob gov mil net org sld web
dz: art asso com edu gov net org pol soc tm
ec: com edu fin gob gov info k12 med mil net org pro
ee: aip com edu fie gov lib med org pri riik
eg: com edu eun gov mil name net org sci
es: com edu gob nom org
et: biz com edu gov info name net org
fi: blogspot dy iki
fj: ac biz com gov info mil name net org pro
fm: com edu net org radio
fr: aeroport asso avocat blogspot cci chambagri com gouv greta medecin nom notaires pharmacien
  port prd tm veterinaire ynh
gd: edu gov
ge: com edu gov mil net org pvt
gg: co cya net org
gh: com edu gov mil org
gi: com edu gov ltd mod org
gl: biz co com edu net org xx
gn: ac com edu gov net org
gp: app asso com edu net org
gr: blogspot com edu gov net org
gt: blog com de edu gob ind mil net org to
gu: com edu gov info net org web
gy: be co com edu gov net org
hk: blogspot com edu gov idv inc ltd net org
hn: cc com edu gob mil net org
hr: blogspot com iz name
ht: art asso com coop edu firm gouv info med net org perso pol pro rel shop
hu: 2000 agrar blogspot bolt casino city co erotica erotika film forum games hotel info ingatlan
  jogasz konyvelo lakas media news org priv reklam sex shop sport suli szex tm tozsde utazas video
id: ac biz co desa go mil my net or ponpes sch web
ie: blogspot gov
il: ac co gov idf k12 muni net org
im: ac co com net org ro tt tv
in: ac ai am biz blogspot ca cn co com coop cs dr edu er firm gen gov ind info int io me mil net
  nic org pg pro res travel tv uk up us web
info: dyndns nsupdate webhop
int: eu
io: com github gitlab hzc nid qcx shw
iq: com edu gov mil net org
ir: ac co gov id net org sch
is: blogspot com edu gov int net org
it: abr abruzzo ag agrigento al alessandria an ancona ao aosta ap aq ar arezzo ascoli-piceno asti
  at av avellino ba bari bas basilicata belluno benevento bergamo bg bi biella bl blogspot bn bo
  bologna bolzano br brescia brindisi bs bt bz ca cagliari cal calabria caltanissetta cam campania
  campobasso caserta catania catanzaro cb ce ch chieti ci cl cn co como cosenza cr cremona crotone
  cs ct cuneo cz edu emilia-romagna emr en enna fc fe ferrara fg fi firenze florence fm foggia
  forli-cesena fr friuli-venezia-giulia frosinone fvg ge genoa genova go gorizia gov gr grosseto
  im imperia is isernia kr laquila latina laz lazio lc le lecce lecco li lig liguria livorno lo
  lodi lom lombardia lt lu lucca macerata mantova mar marche matera mb mc me messina mi milan
  milano mn mo modena mol molise monza ms mt na naples napoli no novara nu nuoro og or ot pa
  padova padua palermo parma pavia pc pd pe perugia pesaro-urbino pescara pg pi piacenza piedmont
  piemonte pisa pistoia pmn pn po pordenone potenza pr prato pt pu pug puglia pv pz ra ragusa
  ravenna rc re reggio-calabria reggio-emilia rg ri rieti rimini rm rn ro roma rome rovigo sa
  salerno sar sardegna sardinia sassari savona si sic sicilia sicily siena siracusa so sondrio sp
  sr ss sv ta taa taranto te teramo terni tn to torino tos toscana tp tr trapani trento treviso
  trieste ts turin tuscany tv ud udine umb umbria va vao varese vb vc vda ve ven veneto venezia
  venice verbania vercelli verona vi vicenza viterbo vr vs vt vv
je: co net of org
jo: com edu gov mil name net org sch
jp: ac ad aichi akita aomori blogspot boo boy but chiba chu co daa ed eek ehime fem fukui fukuoka
  fukushima gifu go gr gunma her hiroshima hokkaido hyogo ibaraki ishikawa iwate kagawa kagoshima
  kanagawa kochi kumamoto kyoto lg mie miyagi miyazaki moo nagano nagasaki nara ne niigata oita
  okayama okinawa or osaka pya rdy rgr saga saitama shiga shimane shizuoka skr sub tochigi
  tokushima tokyo tottori toyama wakayama xii yamagata yamaguchi yamanashi
ke: ac co go info me ne or sc
kg: blog com edu gov io jp mil net org tv uk us
ki: biz com edu gov info net org
km: ass asso com coop edu gouv gov medecin mil nom notaires org prd presse tm veterinaire
kn: edu gov net org
kp: com edu gov org rep tra
kr: ac blogspot busan chungbuk chungnam co daegu daejeon es gangwon go gwangju gyeongbuk gyeonggi
  gyeongnam hs incheon jeju jeonbuk jeonnam kg mil ms ne or pe re sc seoul ulsan
kw: com edu emb gov ind net org
ky: com edu net org
kz: com edu gov mil net org
la: bnr com edu gov info int net org per
lb: com edu gov net org
lc: co com edu gov net org oy
li: blogspot caa
lk: ac assn com edu gov grp hotel int ltd net ngo org sch soc web
lr: com edu gov net org
ls: ac biz co de edu gov info net org sc
lt: blogspot gov
lu: blogspot
lv: asn com conf edu gov id mil net org
ly: com edu gov id med net org plc sch
ma: ac co gov net org press
mc: asso tm
md: at blogspot de jp to
me: ac co edu gov its net org priv webhop
mg: co com edu gov mil nom org prd tm
mk: blogspot com edu gov inf name net org
ml: com edu gouv gov net org presse
mn: edu gov nyc org
mo: com edu gov net org
mp: ju
mr: blogspot gov
ms: com edu gov lab net org
mt: com edu net org
mu: ac co com gov net or org
mv: biz com coop edu gov info int mil museum name net org pro
mw: ac biz co com coop edu gov int museum net org
mx: blogspot com edu gob net org
my: biz blogspot com edu gov mil name net org
mz: ac adv co edu gov mil net org
na: ca cc co com dr in info mx name or org pro school tv us ws
nc: asso nom
net: cloudfront dynalias gb homeip homelinux homeunix hu in is-a-geek jp ru se ts uk webhop za
nf: arts com firm info net other per rec store web
ng: col com edu firm gen gov ltd mil name net ngo org sch
ni: ac biz co com edu gob in info int mil net nom org web
nl: blogspot co gov
no: aa ah al bergen blogspot bodo bu co dep eid fet fhs fla fm folkebibl fylkesbibl gol ha hl hm
  hof hol idrett kommune lom mil mr museum nl nt of ol oslo priv rl sel sf ski st stavanger tm tr
  tromso trondheim va vf vgs vik
nr: biz com edu gov info net org
nz: ac co cri geek gen govt health iwi kiwi maori mil net org parliament school
om: co com edu gov med museum net org pro
org: ae altervista dynalias dyndns eu hk homelinux homeunix is-a-geek jpn js us webhop za
pa: abo ac com edu gob ing med net nom org sld
page: hlx
pe: blogspot com edu gob mil net nom org
pf: com edu org
ph: com edu gov mil net ngo org
pk: biz com edu fam gob gok gon gop gos gov info net org web
pl: agro aid art atm augustow auto babia-gora bedzin beskidy bialowieza bialystok bielawa
  bieszczady biz boleslawiec bydgoszcz bytom cieszyn co com czeladz czest dlugoleka edu elblag elk
  gda gdansk gdynia gliwice glogow gmina gniezno gorlice gov grajewo gsm ilawa info jaworzno
  jelenia-gora jgora kalisz karpacz kartuzy kaszuby katowice kazimierz-dolny kepno ketrzyn klodzko
  kobierzyce kolobrzeg konin konskowola krakow kutno lapy lebork legnica lezajsk limanowa lomza
  lowicz lubin lukow mail malbork malopolska mazowsze mazury med media miasta mielec mielno mil
  mragowo naklo net nieruchomosci nom nowaruda nysa olawa olecko olkusz olsztyn opoczno opole org
  ostroda ostroleka ostrowiec ostrowwlkp pc pila pisz podhale podlasie polkowice pomorskie pomorze
  powiat poznan priv prochowice pruszkow przeworsk pulawy radom rawa-maz realestate rel rybnik
  rzeszow sanok sejny sex shop sklep skoczow slask slupsk sopot sos sosnowiec stalowa-wola
  starachowice stargard suwalki swidnica swiebodzin swinoujscie szczecin szczytno szkola targi
  tarnobrzeg tgory tm tourism travel turek turystyka tychy ustka walbrzych warmia warszawa waw
  wegrow wielun wlocl wloclawek wodzislaw wolomin wroclaw zachpomor zagan zakopane zarow zgora
  zgorzelec
pm: name own
pn: co edu gov net org
pr: ac biz com edu est gov info name net org pro
pro: aaa aca avocat bar cpa eng jur law med
ps: com edu gov net org plo sec
pt: blogspot com edu gov int net org
pw: co ed go ne or
py: com coop edu gov mil net org
qa: blogspot com edu gov mil name net org sch
re: asso blogspot com nom
ro: arts blogspot co com firm info nom nt org rec shop store tm www
rs: ac blogspot co edu gov in org ox ua
ru: ac adygeya bashkiria bir blogspot cbg com dagestan edu gov grozny int kalmykia kustanai marine
  mil mordovia msk nalchik net nov org pp pyatigorsk ras spb vladikavkaz vladimir
rw: ac co coop gov mil net org
sa: com edu gov med net org pub sch
sb: com edu gov net org
sc: com edu gov net org
sd: com edu gov info med net org tv
se: ac bd blogspot com conf fh fhv org pp press tm
sg: blogspot com edu gov net org per
sh: bip com gov mil net now org vxl
si: blogspot
sk: blogspot
sl: com edu gov net org
sn: art blogspot com edu gouv org perso
so: com edu gov me net org sch
space: uber
ss: biz com edu gov me net org sch
st: co com edu mil net org store
su: abkhazia adygeya aktyubinsk arkhangelsk armenia ashgabad azerbaijan bashkiria bryansk bukhara
  chimkent dagestan east-kazakhstan exnet georgia grozny ivanovo jambyl kalmykia kaluga karacol
  karaganda karelia khakassia krasnodar kurgan kustanai mangyshlak mordovia msk murmansk nalchik
  navoi nov obninsk penza pokrovsk spb tashkent termez togliatti troitsk tula tuva vladikavkaz
  vladimir vologda
sv: com edu gob org red
sx: gov
sy: com edu gov mil net org
sz: ac co org
tc: ch me we
td: blogspot
tf: sch
th: ac co go in mi net online or shop
tj: ac biz co com edu go gov int mil name net nic org web
tl: gov
tm: co com edu gov mil net nom org
tn: com ens fin gov ind info intl nat net org perso tourism
to: com edu gov mil net org oya rdv
tr: av bbs bel biz com dr edu gen gov info k12 kep mil name nc net org pol tel tsk tv web
tt: biz co com coop edu gov info int museum name net org pro travel
tv: dyndns
tw: blogspot club com ebiz edu game gov idv mil net org url
tz: ac co go hotel info me mil ne or sc tv
ua: biz cc cherkassy cherkasy chernigov chernihiv chernivtsi chernovtsy ck cn co com cr crimea cv
  cx dn dnepropetrovsk dnipropetrovsk donetsk dp edu gov ie if in inf kh kharkiv kharkov kherson
  khmelnitskiy khmelnytskyi kiev kirovograd km kr ks kv kyiv lg lt ltd lugansk lutsk lv lviv mk
  mykolaiv net nikolaev od odesa odessa org pl poltava pp rivne rovno rv sb sebastopol sevastopol
  sm sumy te ternopil uz uzhgorod vinnica vinnytsia vn volyn yalta zaporizhzhe zaporizhzhia
  zhitomir zhytomyr zp zt
ug: ac blogspot co com go ne or org sc
uk: ac co gov ltd me net nhs org plc police
us: ak al ar as az ca co ct dc de dni fed fl ga gu hi ia id il in isa kids ks ky la ma md me mi mn
  mo ms mt nc nd ne nh nj nm nsn nv ny oh ok or pa pr ri sc sd tn tx ut va vi vt wa wi wv wy
uy: com edu gub mil net org
uz: co com net org
vc: com edu gov gv mil net org
ve: arts bib co com edu firm gob gov info int mil net nom org rar rec store tec web
vg: at
vi: co com k12 net org
vn: ac ai biz blogspot com edu gov health id info int io name net org pro
vu: blog cn com dev edu me net org
wf: biz sch
ws: com dyndns edu gov net org
ye: com edu gov mil net org
yt: org
za: ac alt co edu gov law mil net ngo nic nis nom org school tm web
zm: ac biz co com edu gov info mil net org sch
zw: ac co gov mil org
"""


def two_level_suffixes() -> list[str]:
    """Return the registries' suffixes of two labels, such as `co.uk`, read from the table above."""
    suffixes: list[str] = []
    country = ""
    for word in _BY_COUNTRY.split():
        if word.endswith(":"):
            country = word[:-1]
        else:
            suffixes.append(f"{word}.{country}")
    return suffixes
